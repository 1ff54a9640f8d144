// What a program does to the pages of a block (protects, locks, maps over, excludes from its children) ends when the
// block is freed, because the C library would unmap a block of that size: the next block must not inherit any of it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

constexpr std::size_t kSize = 1 * MiB;

using Alter = void (*)(void* pages, std::size_t size);

void expect(bool done) {
  if (!done) _exit(99);
}

const struct Alteration {
  const char* name;
  Alter alter;
} kAlterations[] = {
    {"protected", [](void* at, std::size_t size) { expect(mprotect(at, size, PROT_NONE) == 0); }},
    {"read_only", [](void* at, std::size_t size) { expect(mprotect(at, size, PROT_READ) == 0); }},
    {"of_the_parent", [](void* at, std::size_t size) { expect(madvise(at, size, MADV_DONTFORK) == 0); }},
    {"wiped_in_children", [](void* at, std::size_t size) { expect(madvise(at, size, MADV_WIPEONFORK) == 0); }},
    {"mapped_over",
     [](void* at, std::size_t size) {
       expect(mmap(at, size, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
     }},
    {"read_only_by_number",
     [](void* at, std::size_t size) { expect(syscall(SYS_mprotect, at, size, PROT_READ) == 0); }},
    {"unmapped", [](void* at, std::size_t size) { expect(munmap(at, size) == 0); }},
};

// A block of the same size is writable, and a child inherits what was written.
void use_and_free() {
  auto* block = static_cast<unsigned char*>(aligned_alloc(4096, kSize));
  NEED(block);
  std::memset(block, 5, kSize);
  const pid_t child = fork();
  if (child == 0) {
    for (std::size_t at = 0; at < kSize; ++at)
      if (block[at] != 5) _exit(3);
    _exit(0);
  }
  int status = 0;
  NEED(waitpid(child, &status, 0) == child && status == 0, "the child ended with %x", status);
  free(block);
}

// All pages of a block, one page, or those of two blocks at once.
SCENARIO(altered_pages) {
  const Alter alter = kAlterations[std::atoi(std::getenv("ALTERATION"))].alter;
  for (int round = 0; round < 3; ++round) {
    auto* block = static_cast<unsigned char*>(aligned_alloc(4096, kSize));
    NEED(block);
    std::memset(block, 1, kSize);
    if (round == 0) alter(block, kSize);
    if (round == 1) alter(block + 300 * KiB / 4096 * 4096, 4096);
    if (round == 2) alter(block + kSize - 4096, 4096);
    free(block);
    for (int at = 0; at < 4; ++at) use_and_free();
  }
  return 0;
}

class Pages : public testing::TestWithParam<std::size_t> {};

TEST_P(Pages, AreAsBeforeOnceTheBlockIsFreed) {
  const std::string_view name = kAlterations[GetParam()].name;
  if (narrow && (name == "mapped_over" || name == "read_only_by_number"))
    GTEST_SKIP() << "not seen on 32-bit (docs/design/slabs.md)";
  const Outcome outcome = run("altered_pages", {.environment = {{"ALTERATION", std::to_string(GetParam())}}});
  EXPECT_TRUE(outcome.succeeded()) << outcome.describe();
}

INSTANTIATE_TEST_SUITE_P(Altered, Pages, testing::Range(std::size_t{0}, std::size(kAlterations)),
                         [](const auto& given) { return kAlterations[given.param].name; });

}  // namespace
