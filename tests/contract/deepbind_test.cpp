// Libraries opened with RTLD_DEEPBIND, which look for malloc and free in their own dependencies first.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "support/library.h"
#include "support/scenario.h"

using namespace contract;

extern "C" void* open_beside(const char* name, int flags);
extern "C" void* open_beside_in_base(const char* name, int flags);
extern "C" void* next_to_opener(const char* name);

namespace {

const char* plugin() { return std::getenv("CONTRACT_DEEP_PLUGIN"); }

// The plugin's file name, without its folder.
std::string bare_name() { return std::strrchr(plugin(), '/') + 1; }

void exchange_blocks(void* library) {
  NEED(library, "%s", dlerror());
  auto* make = reinterpret_cast<char* (*)(const char*)>(dlsym(library, "deep_make"));
  auto* release = reinterpret_cast<void (*)(char*)>(dlsym(library, "deep_free"));
  for (int round = 0; round < 1000; ++round) {
    const std::string text(static_cast<std::size_t>(round), 'd');
    char* theirs = make(text.c_str());
    NEED(text == theirs);
    free(theirs);
    release(strdup(text.c_str()));
  }
}

SCENARIO(deep_exchange) {
  exchange_blocks(dlopen(plugin(), RTLD_NOW | RTLD_DEEPBIND));
  return 0;
}

SCENARIO(deep_exchange_in_base) {
  exchange_blocks(dlmopen(LM_ID_BASE, plugin(), RTLD_LAZY | RTLD_DEEPBIND));
  return 0;
}

TEST(DeepBind, BlocksGoToAndFro) { EXPECT_SCENARIO("deep_exchange"); }

TEST(DeepBind, BlocksGoToAndFroByTheOtherName) {
  if (mode() == Mode::archive) GTEST_SKIP() << "libreheap.a leaves dlmopen to the C library";
  EXPECT_SCENARIO("deep_exchange_in_base");
}

// Another namespace has its own C library.
SCENARIO(deep_namespace) {
  void* library = dlmopen(LM_ID_NEWLM, plugin(), RTLD_NOW | RTLD_DEEPBIND);
  NEED(library, "%s", dlerror());
  auto* make = reinterpret_cast<char* (*)(const char*)>(dlsym(library, "deep_make"));
  auto* release = reinterpret_cast<void (*)(char*)>(dlsym(library, "deep_free"));
  char* block = make("apart");
  NEED(std::strcmp(block, "apart") == 0);
  release(block);
  return 0;
}

TEST(DeepBind, AnotherNamespaceKeepsItsOwn) { EXPECT_SCENARIO("deep_namespace"); }

// Which must not be those of a heap that nobody uses.
SCENARIO(figures_of_a_library) {
  void* library = dlopen("libc.so.6", RTLD_NOW);
  NEED(library, "%s", dlerror());
  // Declared as deprecated.
  auto* figures = reinterpret_cast<struct mallinfo (*)()>(dlsym(library, "mallinfo"));
  NEED(figures);
  const int before = figures().uordblks;
  std::vector<std::string> strings(1000, std::string(1000, 's'));
  NEED(figures().uordblks - before > 1000000);
  return 0;
}

TEST(DeepBind, OneLibraryIsAskedForFigures) {
  if (mode() == Mode::archive) GTEST_SKIP() << "libreheap.a leaves dlsym to the C library";
  EXPECT_SCENARIO("figures_of_a_library");
}

// As Python's ctypes does: the library's functions have the program's malloc, so must this free.
SCENARIO(free_of_a_library) {
  for (const char* name : {"libc.so.6", plugin()}) {
    void* library = dlopen(name, RTLD_NOW);
    NEED(library, "%s", dlerror());
    auto* release = reinterpret_cast<void (*)(void*)>(dlsym(library, "free"));
    auto* make = reinterpret_cast<void* (*)(std::size_t)>(dlsym(library, "malloc"));
    NEED(release && make);
    for (std::size_t size = 0; size < 1000; ++size) {
      release(strdup(std::string(size, 'd').c_str()));
      free(make(size));
    }
    NEED(dlsym(library, "no_such_name") == nullptr);
    NEED(dlerror() != nullptr);
  }
  return 0;
}

TEST(DeepBind, OneLibraryIsAskedForFree) {
  if (mode() == Mode::archive) GTEST_SKIP() << "libreheap.a leaves dlsym to the C library";
  EXPECT_SCENARIO("free_of_a_library");
}

// As ClickHouse does, whose own free gives on what it has not made.
SCENARIO(next_free_of_a_library) {
  void* library = dlopen(plugin(), RTLD_NOW);
  NEED(library, "%s", dlerror());
  auto* next_to = reinterpret_cast<void* (*)(const char*)>(dlsym(library, "deep_next"));
  auto* release = reinterpret_cast<void (*)(void*)>(next_to("free"));
  auto* make = reinterpret_cast<void* (*)(std::size_t)>(next_to("malloc"));
  NEED(release && make);
  for (std::size_t size = 0; size < 1000; ++size) {
    release(strdup(std::string(size, 'n').c_str()));
    free(make(size));
  }
  return 0;
}

TEST(DeepBind, OpenedLibraryAsksForTheNextFree) {
  if (mode() == Mode::archive) GTEST_SKIP() << "libreheap.a leaves dlsym to the C library";
  EXPECT_SCENARIO("next_free_of_a_library");
}

// It may be where ours passes on what is not its own.
TEST(DeepBind, LibraryLoadedWithTheProgramFindsWhatIsBehindIt) {
  if (mode() != Mode::preload) GTEST_SKIP() << "the library may stand before libreheap.so";
  EXPECT_EQ(next_to_opener("calloc"), dlsym(RTLD_NEXT, "__libc_calloc"));
}

// The program stands before all libraries; behind libreheap.so there would be the C library's.
TEST(DeepBind, WhatComesNextDependsOnWhoAsks) {
  if (mode() == Mode::archive) GTEST_SKIP() << "libreheap.a leaves dlsym to the C library";
  EXPECT_EQ(dlsym(RTLD_NEXT, "calloc"), dlsym(RTLD_DEFAULT, "calloc"));
}

TEST(DeepBind, LibrariesAreLookedForWhereTheirOpenerSays) {
  for (int flags : {RTLD_NOW, RTLD_NOW | RTLD_DEEPBIND}) {
    EXPECT_EQ(dlopen(bare_name().c_str(), flags), nullptr) << "the program has no such path";
    for (auto* open : {open_beside, open_beside_in_base}) {
      void* library = open(bare_name().c_str(), flags);
      ASSERT_NE(library, nullptr) << dlerror();
      dlclose(library);
    }
  }
}

}  // namespace
