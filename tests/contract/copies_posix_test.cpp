// Several copies of reheap in one process: the program's, and one that a library has linked in under hidden names.
// Blocks go back to the copy that made them.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "plugins/second_copy.h"
#include "support/library.h"
#include "support/names.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

const SecondCopy* second(const char* named_by = "CONTRACT_SECOND_COPY") {
  void* library = dlopen(std::getenv(named_by), RTLD_NOW | RTLD_LOCAL);
  NEED(library, "%s", dlerror());
  return reinterpret_cast<const SecondCopy* (*)()>(dlsym(library, "second_copy"))();
}

const std::size_t sizes[] = {0, 1, 24, 100, 1000, 5000, 40000, 300000, 3 * MiB, 40 * MiB};

class Copies : public testing::Test {
  void SetUp() override {
    if (!on_reheap()) GTEST_SKIP() << "another heap cannot know";
  }
};

// What crosses over, both ways.
int pass_blocks(const SecondCopy* copy) {
  for (const std::size_t size : sizes) {
    void* theirs = copy->make(size);
    NEED(theirs && !CONTRACT_FIND(rh_owns)(theirs), "of %zu bytes", size);
    const std::size_t whole = usable(theirs);
    NEED(whole >= size && whole == copy->size_of(theirs), "of %zu bytes: %zu", size, whole);
    fill(theirs, size, 1);
    theirs = realloc(theirs, size * 2 + 1);
    NEED(intact(theirs, size, 1), "of %zu bytes", size);
    copy->drop(theirs);
    errno = 4242;
    free(copy->make(size));
    NEED(errno == 4242);
    ::operator delete(copy->make_new(size));

    void* ours = malloc(size);
    NEED(copy->size_of(ours) == usable(ours), "of %zu bytes", size);
    fill(ours, size, 2);
    ours = copy->resize(ours, size * 2 + 1);
    NEED(intact(ours, size, 2), "of %zu bytes", size);
    free(ours);
    copy->drop(malloc(size));
    copy->drop_new(::operator new(size), size);
    NEED(copy->resize(malloc(size), 0) == nullptr || !kReallocFrees);
    void* aligned = nullptr;
    NEED(posix_memalign(&aligned, 4096, size) == 0);
    copy->drop(aligned);
  }
  return 0;
}

SCENARIO(pass_between_two) { return pass_blocks(second()); }
TEST_F(Copies, BlocksGoBackToTheirMaker) { EXPECT_SCENARIO("pass_between_two"); }

SCENARIO(pass_to_hardened) { return pass_blocks(second("CONTRACT_HARDENED_COPY")); }
TEST_F(Copies, BlocksGoBackToAHardenedOne) {
  if (std::getenv("CONTRACT_HARDENED_COPY") == nullptr) GTEST_SKIP() << "the hardened build is not here";
  EXPECT_SCENARIO("pass_to_hardened");
}

// As many plugins, each with its own.
constexpr int kMany = 40;

SCENARIO(pass_between_many) {
  std::vector<const SecondCopy*> copies;
  for (int at = 0; at < kMany; ++at) copies.push_back(second(("CONTRACT_COPY_" + std::to_string(at)).c_str()));
  for (const SecondCopy* from : copies) {
    free(from->make(100));
    from->drop(malloc(100));
    for (const SecondCopy* to : copies) to->drop(to->resize(from->make(100), 1000));
  }
  return 0;
}

struct Folder {
  const std::filesystem::path path = testing::TempDir() + "reheap-copies-" + std::to_string(getpid());

  Folder() { std::filesystem::create_directory(path); }
  Folder(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
};

// To the loader a copied file is another library. Their thread-local storage takes more room than it keeps for such.
TEST_F(Copies, ManyKnowEachOther) {
  const Folder folder;
  Conditions conditions{.environment = {{"GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=16384"}}};
  for (int at = 0; at < kMany; ++at) {
    const std::filesystem::path file = folder.path / std::to_string(at);
    std::filesystem::copy_file(std::getenv("CONTRACT_SECOND_COPY"), file);
    conditions.environment.emplace_back("CONTRACT_COPY_" + std::to_string(at), file.string());
  }
  EXPECT_SCENARIO("pass_between_many", conditions);
}

// 800 MB pass through each way: they are freed, not merely ignored.
SCENARIO(crossing_blocks_are_freed) {
  const SecondCopy* copy = second();
  const std::size_t before = resident();
  for (int at = 0; at < rounds(100000); ++at) {
    auto* theirs = static_cast<char*>(copy->make(8000));
    theirs[0] = theirs[4096] = 1;
    free(theirs);
    auto* ours = static_cast<char*>(malloc(8000));
    ours[0] = ours[4096] = 1;
    copy->drop(ours);
  }
  NEED(resident() < before + 20 * MiB, "%zu KiB more", (resident() - before) / KiB);
  return 0;
}

TEST_F(Copies, WhatCrossesIsFreed) { EXPECT_SCENARIO("crossing_blocks_are_freed", {.deadline = 60}); }

SCENARIO(pass_between_threads) {
  const SecondCopy* copy = second();
  std::atomic<unsigned char*> slots[64] = {};
  std::vector<std::thread> threads;
  for (std::uint64_t at = 0; at < 4; ++at) {
    threads.emplace_back([&, at] {
      Random random(at);
      for (int round = 0; round < rounds(20000); ++round) {
        const std::size_t size = 1 + random.below(4000);
        auto* block = static_cast<unsigned char*>(random.one_in(2) ? malloc(size) : copy->make(size));
        NEED(block);
        std::memset(block, static_cast<int>(size % 251), size);
        block[0] = 77;
        block = slots[random.below(64)].exchange(block);
        if (block == nullptr) continue;
        NEED(block[0] == 77);
        if (random.one_in(4)) block = static_cast<unsigned char*>(realloc(block, 1 + random.below(4000)));
        random.one_in(2) ? free(block) : copy->drop(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& slot : slots) free(slot);
  return 0;
}

TEST_F(Copies, BlocksPassBetweenThreadsAndCopies) { EXPECT_SCENARIO("pass_between_threads"); }

SCENARIO(pass_in_a_child) {
  const SecondCopy* copy = second();
  void* theirs = copy->make(100);
  void* ours = malloc(100);
  const pid_t child = fork();
  if (child == 0) {
    free(theirs);
    copy->drop(ours);
    _exit(pass_blocks(copy));
  }
  int status = 0;
  NEED(waitpid(child, &status, 0) == child && status == 0, "%x", status);
  free(theirs);
  copy->drop(ours);
  return 0;
}

TEST_F(Copies, BlocksOfBothArePassedInAChild) { EXPECT_SCENARIO("pass_in_a_child"); }

std::atomic<bool> g_forks{false};
std::atomic<int> g_users{0};

// The handler of a fork that has begun already.
void let_others_begin() {
  g_forks = true;
  while (g_users != 3) std::this_thread::yield();
}

// In a process of its own, for nobody has used the copy yet.
int fork_at_first_use(const SecondCopy* copy) {
  std::vector<std::thread> users;
  for (int at = 0; at < 3; ++at) {
    users.emplace_back([copy] {
      while (!g_forks) std::this_thread::yield();
      copy->drop(copy->make(MiB));
      for (++g_users; g_forks;) copy->drop(copy->make(MiB));
    });
  }
  NEED(pthread_atfork(let_others_begin, nullptr, nullptr) == 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    for (const std::size_t size : sizes) copy->drop(copy->make(size));
    _exit(0);
  }
  int status = 0;
  NEED(waitpid(child, &status, 0) == child && status == 0, "%x", status);
  g_forks = false;
  for (std::thread& user : users) user.join();
  return 0;
}

SCENARIO(fork_beside_first_use) {
  const SecondCopy* copy = second();
  for (int round = 0; round < rounds(20); ++round) {
    const pid_t child = fork();
    if (child == 0) _exit(fork_at_first_use(copy));
    int status = 0;
    NEED(waitpid(child, &status, 0) == child && status == 0, "%x", status);
  }
  return 0;
}

TEST_F(Copies, ForksAreKnownOfBeforeTheFirstBlock) { EXPECT_SCENARIO("fork_beside_first_use", {.deadline = 60}); }

// What neither made goes to the C library's heap, or is told of, as ever.
SCENARIO(pass_foreign_ones) {
  const SecondCopy* copy = second();
  for (const auto& [call, make] : foreign_makers()) {
    for (const std::size_t size : sizes) {
      copy->drop(make(size));
      free(make(size));
    }
  }
  return 0;
}

TEST_F(Copies, WhatNeitherMadeGoesOn) { EXPECT_SCENARIO("pass_foreign_ones"); }

// Others are asked by one thread whose they are, and unloaded by another.
SCENARIO(copies_come_and_go) {
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int at = 0; at < 3; ++at) {
    threads.emplace_back([&] {
      while (!over) free(foreign_makers()[0].make(100));
    });
  }
  for (int round = 0; round < rounds(100); ++round) {
    void* library = dlopen(std::getenv("CONTRACT_OWN_HEAP_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
    NEED(library, "%s", dlerror());
    auto* use = reinterpret_cast<void* (*)(bool)>(dlsym(library, "plugin_use_heap"));
    void* block = use(true);
    NEED(block && static_cast<char*>(block)[99] == 1);
    free(block);
    NEED(dlclose(library) == 0);
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  return 0;
}

TEST_F(Copies, OneThatIsAskedIsNotGone) { EXPECT_SCENARIO("copies_come_and_go", {.deadline = 60}); }

SCENARIO(free_twice_across) {
  const SecondCopy* copy = second();
  void* block = malloc(100);
  copy->drop(block);
  copy->drop(opaque(block));
  return 0;
}

TEST_F(Copies, ASecondFreeAcrossIsToldOf) {
  const Outcome outcome = run("free_twice_across");
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.err.find("reheap: "), std::string::npos) << outcome.describe();
}

}  // namespace
