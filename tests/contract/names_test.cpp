// Every name a Linux program may call: who serves it, and whether it does what its manual page says.
#include <dirent.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <fstream>
#include <string>
#include <vector>

#include "support/library.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

struct Name {
  const char* name;
  bool everywhere;  // in the C library of every supported system
};

const Name names[] = {
    {"malloc", true},
    {"calloc", true},
    {"realloc", true},
    {"reallocarray", true},
    {"free", true},
    {"free_sized", false},
    {"free_aligned_sized", false},
    {"aligned_alloc", true},
    {"posix_memalign", true},
    {"memalign", true},
    {"valloc", true},
    {"pvalloc", true},
    {"malloc_usable_size", true},
    {"malloc_trim", true},
    {"mallinfo", true},
    {"mallinfo2", true},
    {"malloc_stats", true},
    {"malloc_info", true},
    {"mallopt", true},
};

TEST(Names, AreServedByTheLibrary) {
  for (const auto& [name, everywhere] : names) {
    if (!everywhere && !on_reheap()) continue;
    EXPECT_EQ(server_of(dlsym(RTLD_DEFAULT, name)), expected_server()) << name;
  }
}

// A single name left to another library would pass its blocks to our free.
TEST(Names, CfreeIsServedByTheLibraryWhereItCanBeCalled) {
  void* cfree = dlsym(RTLD_DEFAULT, "cfree");
  if (!cfree) GTEST_SKIP() << "this C library has no cfree";
  reinterpret_cast<void (*)(void*)>(cfree)(malloc(100));
  if (on_reheap()) EXPECT_EQ(server_of(cfree), expected_server());
}

TEST(Names, SizedFrees) {
  if (!on_reheap()) GTEST_SKIP() << "names of C23, not in this C library";
  auto* free_sized = find<void(void*, std::size_t)>("free_sized");
  auto* free_aligned_sized = find<void(void*, std::size_t, std::size_t)>("free_aligned_sized");
  ASSERT_TRUE(free_sized && free_aligned_sized);
  free_sized(nullptr, 0);
  free_aligned_sized(nullptr, 64, 0);
  const std::size_t before = resident();
  errno = 4242;
  for (int round = 0; round < 300; ++round) {
    for (const std::size_t size : {1, 100, 5000, 40000, 300000}) {
      char* block = static_cast<char*>(round % 2 ? malloc(size) : calloc(1, size));
      block[0] = block[size - 1] = 1;
      free_sized(block, size);
      block = static_cast<char*>(aligned_alloc(256, size));
      block[0] = block[size - 1] = 1;
      free_aligned_sized(block, 256, size);
    }
  }
  EXPECT_EQ(errno, 4242);
  EXPECT_LT(resident(), before + 16 * MiB) << "they free";
}

TEST(Names, MallocTrim) {
  std::vector<void*> blocks;
  for (int at = 0; at < 3000; ++at) {
    blocks.push_back(malloc(20000));
    std::memset(blocks.back(), 1, 20000);
  }
  const std::size_t full = resident();
  for (void* block : blocks) free(block);
  const int result = malloc_trim(0);
  EXPECT_TRUE(result == 0 || result == 1) << result;
  EXPECT_LT(resident(), full - 40 * MiB) << "60 MB were free";
}

TEST(Names, Mallopt) {
  for (const int parameter : {M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX, M_ARENA_MAX}) {
    const int result = mallopt(parameter, 1 << 20);
    EXPECT_TRUE(result == 0 || result == 1) << parameter;
  }
  void* block = malloc(1000);
  EXPECT_NE(block, nullptr);
  free(block);
}

template <class Info> void check_info(Info (*info)()) {
  const Info before = info();
  std::vector<void*> blocks;
  constexpr std::size_t kBlock = 5000;
  constexpr int kCount = 6000;
  for (int at = 0; at < kCount; ++at) {
    blocks.push_back(malloc(kBlock));
    std::memset(blocks.back(), 1, kBlock);
  }
  const auto used = [](const Info& about) {
    return static_cast<std::size_t>(about.uordblks) + static_cast<std::size_t>(about.hblkhd);
  };
  const auto held = [](const Info& about) {
    return static_cast<std::size_t>(about.arena) + static_cast<std::size_t>(about.hblkhd);
  };
  const Info full = info();
  for (void* block : blocks) free(block);
  const Info after = info();
  EXPECT_GE(used(full), used(before) + kBlock * kCount * 9 / 10);
  EXPECT_LE(used(full), used(before) + kBlock * kCount * 3 / 2);
  EXPECT_GE(held(full), kBlock * kCount * 9 / 10);
  EXPECT_LE(used(after), used(before) + kBlock * kCount / 10);
}

TEST(Names, Mallinfo2) { check_info(CONTRACT_FIND(mallinfo2)); }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // it is served nevertheless
TEST(Names, Mallinfo) { check_info(&mallinfo); }
#pragma GCC diagnostic pop

SCENARIO(print_malloc_stats) {
  void* block = malloc(100000);
  malloc_stats();
  free(block);
  return 0;
}

TEST(Names, MallocStatsPrintsToStderr) {
  const Outcome outcome = run("print_malloc_stats");
  EXPECT_TRUE(outcome.succeeded()) << outcome.describe();
  EXPECT_GT(outcome.err.size(), 20u);
  EXPECT_EQ(outcome.out, "");
}

std::string info_document() {
  char* text = nullptr;
  std::size_t length = 0;
  std::FILE* stream = open_memstream(&text, &length);
  EXPECT_EQ(malloc_info(0, stream), 0);
  std::fclose(stream);
  std::string document(text, length);
  free(text);
  return document;
}

TEST(Names, MallocInfoWritesXml) {
  const std::string document = info_document();
  std::FILE* parser = popen("env -u LD_PRELOAD python3 -c 'import sys, xml.etree.ElementTree as tree;"
                            " sys.exit(tree.parse(sys.stdin).getroot().tag != \"malloc\")'",
                            "w");
  ASSERT_NE(parser, nullptr);
  std::fwrite(document.data(), 1, document.size(), parser);
  EXPECT_EQ(pclose(parser), 0) << document;
}

TEST(Names, MallocInfoRefusesOptions) {
  errno = 0;
  const int result = malloc_info(1, stdout);
  EXPECT_TRUE(result == EINVAL || (result == -1 && errno == EINVAL)) << result;
}

// Blocks that the C library allocates for its callers come from the same heap.
TEST(Names, BlocksOfTheCLibrary) {
  std::vector<void*> blocks;
  blocks.push_back(strdup("duplicated"));
  blocks.push_back(strndup("duplicated", 4));
  blocks.push_back(wcsdup(L"duplicated"));
  blocks.push_back(realpath("/proc/self", nullptr));
  blocks.push_back(getcwd(nullptr, 0));

  char* printed = nullptr;
  ASSERT_EQ(asprintf(&printed, "%s %5000d", "printed", 7), 5008);
  blocks.push_back(printed);

  char* line = nullptr;
  std::size_t capacity = 0;
  std::string text(30000, 'x');
  text += '\n';
  std::FILE* stream = fmemopen(text.data(), text.size(), "r");
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(getline(&line, &capacity, stream), 30001);
  std::fclose(stream);
  blocks.push_back(line);

  char* memory = nullptr;
  std::size_t length = 0;
  stream = open_memstream(&memory, &length);
  for (int at = 0; at < 5000; ++at) std::fprintf(stream, "%d ", at);
  std::fclose(stream);
  EXPECT_EQ(std::strlen(memory), length);
  blocks.push_back(memory);

  dirent** entries = nullptr;
  const int found = scandir("/proc/self", &entries, nullptr, alphasort);
  ASSERT_GT(found, 5);
  for (int at = 0; at < found; ++at) blocks.push_back(entries[at]);
  blocks.push_back(entries);

  for (void* block : blocks) {
    ASSERT_NE(block, nullptr);
    EXPECT_GE(malloc_usable_size(block), 1u);
    if (auto* owns = CONTRACT_FIND(rh_owns)) EXPECT_TRUE(owns(block));
  }
  for (void* block : blocks) free(realloc(block, 40000));
}

}  // namespace
