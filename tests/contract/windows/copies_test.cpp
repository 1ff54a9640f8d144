// Several copies of reheap in one process: in the program and in a DLL that is loaded and unloaded. Blocks go back to
// the copy that made them.
#include <gtest/gtest.h>
#include <malloc.h>
#include <windows.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "plugin.h"
#include "support/library.h"
#include "support/names.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

class Loaded {
 public:
  Loaded() : library_(load_named("CONTRACT_PLUGIN")) { NEED(library_, "error %lu", GetLastError()); }
  ~Loaded() { FreeLibrary(library_); }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  const Plugin* operator->() const {
    return reinterpret_cast<PluginEntry*>(reinterpret_cast<void*>(GetProcAddress(library_, "plugin")))();
  }
  HMODULE module() const { return library_; }

 private:
  HMODULE library_;
};

const std::size_t sizes[] = {1, 24, 100, 5000, 100000, 3 * MiB};

TEST(Copies, BlocksOfADllAreItsOwn) {
  const Loaded dll;
  for (const std::size_t size : sizes) {
    void* block = dll->make(size);
    EXPECT_FALSE(CONTRACT_FIND(rh_owns)(block)) << size;
    EXPECT_EQ(_msize(block), size);
    fill(block, size, 1);
    block = realloc(block, size * 2);
    EXPECT_TRUE(intact(block, size, 1)) << size;
    free(block);
  }
}

TEST(Copies, BlocksOfTheProgramGoBackToIt) {
  const Loaded dll;
  for (const std::size_t size : sizes) {
    void* block = malloc(size);
    EXPECT_EQ(dll->size_of(block), size);
    fill(block, size, 2);
    block = dll->resize(block, size * 2);
    EXPECT_TRUE(intact(block, size, 2)) << size;
    dll->drop(block);
  }
}

TEST(Copies, BlocksOfTheRuntimeGoBackToIt) {
  const Loaded dll;
  for (const Maker& maker : foreign_makers()) {
    for (const std::size_t size : sizes) {
      void* block = maker.make(size);
      EXPECT_EQ(dll->size_of(block), size);
      dll->drop(block);
    }
  }
}

TEST(Copies, BlocksPassBetweenThreadsAndCopies) {
  const Loaded dll;
  std::atomic<void*> slots[64] = {};
  std::vector<std::thread> threads;
  for (std::uint64_t at = 0; at < 4; ++at) {
    threads.emplace_back([&, at] {
      Random random(at);
      for (int round = 0; round < 20000; ++round) {
        const std::size_t size = 1 + random.below(4000);
        void* block = random.one_in(2) ? malloc(size) : dll->make(size);
        NEED(block);
        std::memset(block, 1, size);
        block = slots[random.below(64)].exchange(block);
        random.one_in(2) ? free(block) : dll->drop(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& slot : slots) free(slot);
}

struct Copy {  // src/entry/copies.h
  unsigned mark, size;
  bool (*owns)(const void* pointer);
  std::size_t (*bytes_from)(const void* pointer);
  void (*free)(void* pointer);
  void (*meet)(const Copy* other);
  void (*forget)(const Copy* other);
};

const Copy* copy_in(HMODULE module) {
  const auto* base = reinterpret_cast<const char*>(module);
  const auto* dos = reinterpret_cast<const IMAGE_DOS_HEADER*>(base);
  const auto* headers = reinterpret_cast<const IMAGE_NT_HEADERS*>(base + dos->e_lfanew);
  const IMAGE_SECTION_HEADER* section = IMAGE_FIRST_SECTION(headers);
  for (int at = 0; at < headers->FileHeader.NumberOfSections; ++at, ++section)
    if (std::memcmp(section->Name, ".reheap", 8) == 0)
      return reinterpret_cast<const Copy*>(base + section->VirtualAddress);
  return nullptr;
}

// The control: once the program's copy has forgotten the DLL's, nobody owns its blocks.
SCENARIO(forgotten_copy) {
  const Loaded dll;
  void* block = dll->make(5000);
  const Copy* own = copy_in(GetModuleHandleA(nullptr));
  const Copy* other = copy_in(dll.module());
  NEED(own && other);
  own->forget(other);
  free(block);
  return 0;
}

TEST(Copies, AForgottenOneIsMissed) {
  const Outcome outcome = run("forgotten_copy");
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.err.find("reheap: free of "), std::string::npos) << outcome.describe();
}

// A copy that is being unloaded while it is asked is not gone before it has answered: its code would be unmapped under
// the asker.
SCENARIO(forgotten_while_asked) {
  static std::atomic<int> asked{0}, answered{0};
  static const Copy slow = {0,
                            sizeof(Copy),
                            [](const void*) {
                              ++asked;
                              nap(0.2);
                              ++answered;
                              return false;
                            },
                            nullptr,
                            nullptr,
                            nullptr,
                            nullptr};
  const Copy* own = copy_in(GetModuleHandleA(nullptr));
  NEED(own);
  own->meet(&slow);
  void* block = foreign_makers().front().make(100);
  std::thread asker([&] { free(block); });
  while (asked == 0) nap(0.001);
  own->forget(&slow);
  const int at_the_end = answered;
  asker.join();
  NEED(at_the_end == asked, "forgotten with %d questions open", asked - at_the_end);
  return 0;
}

TEST(Copies, OneThatIsAskedIsNotGone) { EXPECT_SCENARIO("forgotten_while_asked"); }

// ---- coming and going ---------------------------------------------------------------------------

// A copy without live blocks returns all its memory when unloaded, whoever freed them.
int load_often(const char* named_by) {
  std::size_t early = 0;
  for (int round = 0; round < 300; ++round) {
    const HMODULE library = load_named(named_by);
    NEED(library, "error %lu", GetLastError());
    char path[MAX_PATH];
    NEED(GetModuleFileNameA(library, path, sizeof path) != 0);
    const auto name = [&](const char* text) { return reinterpret_cast<void*>(GetProcAddress(library, text)); };
    auto* make = reinterpret_cast<void* (*)(std::size_t)>(name("plain_make"));
    auto* drop = reinterpret_cast<void (*)(void*)>(name("plain_drop"));
    void* blocks[20];
    for (void*& block : blocks) block = make(3000);
    std::thread([&] { drop(make(100)); }).join();
    for (void* block : blocks) free(block);
    FreeLibrary(library);
    NEED(!GetModuleHandleA(path), "it stays loaded");
    if (round == 50) early = resident();
  }
  // Wine keeps about a byte of its own for each page ever reserved: 16 KiB a round.
  NEED(resident() < early + 7 * MiB, "%zu KiB after 50 rounds, %zu after all", early / KiB, resident() / KiB);
  return 0;
}

SCENARIO(load_plain_often) { return load_often("CONTRACT_PLAIN_PLUGIN"); }

TEST(Copies, ADllLoadedOften) {
#if !defined(_UCRT) && !defined(__clang__)
  GTEST_SKIP() << "GCC's start-up code on msvcrt frees the DLL's list of exit functions after the "
                  "last of them";
#endif
  EXPECT_SCENARIO("load_plain_often", {.deadline = 60});
}

// So does the C++ library's reserve for exceptions.
SCENARIO(load_cxx_often) { return load_often("CONTRACT_CXX_PLUGIN"); }

TEST(Copies, ADllOfCxxLoadedOften) {
  if (std::getenv("CONTRACT_CXX_PLUGIN") == nullptr) GTEST_SKIP() << "its runtime leaves a block";
  EXPECT_SCENARIO("load_cxx_often", {.deadline = 60});
}

// What it keeps from use goes too.
SCENARIO(load_hardened_often) { return load_often("CONTRACT_HARDENED_PLUGIN"); }

TEST(Copies, AHardenedDllLoadedOften) {
  if (std::getenv("CONTRACT_HARDENED_PLUGIN") == nullptr) GTEST_SKIP() << "this build has no hardened library";
  EXPECT_SCENARIO("load_hardened_often", {.deadline = 60});
}

// Its threads survive the unloading, and so do the blocks still in use.
SCENARIO(unload_beside_threads) {
  for (int round = 0; round < 30; ++round) {
    std::atomic<int> used{0};
    std::atomic<bool> gone{false};
    std::vector<std::thread> threads;
    char* left = nullptr;
    {
      const Loaded dll;
      for (int at = 0; at < 4; ++at) {
        threads.emplace_back([&] {
          dll->drop(dll->make(5000));
          ++used;
          while (!gone) nap(0.001);
          free(malloc(5000));
        });
      }
      while (used < 4) nap(0.001);
      left = static_cast<char*>(dll->make(5000));
      fill(left, 5000, 3);
    }
    gone = true;
    for (std::thread& thread : threads) thread.join();
    NEED(intact(left, 5000, 3), "the memory of a block in use went with the DLL");
  }
  return 0;
}

TEST(Copies, ADllUnloadedBesideThreadsThatUsedIt) { EXPECT_SCENARIO("unload_beside_threads"); }

TEST(Copies, TlsCallbacksOfADllAllocate) {
  const Loaded dll;
  const int before = dll->callbacks();
  for (int at = 0; at < 50; ++at) std::thread([] { free(malloc(10)); }).join();
  EXPECT_GE(dll->callbacks(), before + 50);
}

// The program, a DLL, and reheap.dll under the C runtime.
SCENARIO(three_copies) {
  const Loaded dll;
  const HMODULE library = load_named("CONTRACT_LIBRARY");
  NEED(library, "error %lu", GetLastError());
  for (const std::size_t size : sizes) {
    void* of_dll = dll->make(size);
    void* of_program = malloc(size);
    void* of_library = foreign_makers().front().make(size);
    NEED(of_dll && of_program && of_library);
    NEED(_msize(of_library) == size && dll->size_of(of_library) == size);
    dll->drop(of_program);
    free(of_dll);
    free(of_library);
    dll->drop(foreign_makers().front().make(size));
    free_foreign(malloc(size));
    free_foreign(dll->make(size));
  }
  return 0;
}

TEST(Copies, ThreeInOneProcess) {
  if (!std::getenv("CONTRACT_LIBRARY")) GTEST_SKIP() << "reheap.dll is not built";
  EXPECT_SCENARIO("three_copies");
}

}  // namespace
