// No address space left: only a 32-bit process gets there.
#include <gtest/gtest.h>
#include <windows.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "address_space.h"
#include "support/library.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"
#include "support/windows/committed.h"

using namespace contract;

namespace {

SCENARIO(no_address_space) {
  std::vector<void*> taken;
  taken.reserve(100000);
  for (std::size_t size = 256 * MiB; size >= 64 * KiB; size /= 2)
    while (void* part = VirtualAlloc(nullptr, size, MEM_RESERVE, PAGE_NOACCESS)) taken.push_back(part);
  Blocks blocks;
  do errno = 0;
  while (blocks.keep(malloc(100 * KiB)));
  NEED(errno == ENOMEM, "errno is %d", errno);
  for (void* part : taken) VirtualFree(part, 0, MEM_RELEASE);
  void* block = malloc(64 * MiB);
  NEED(block, "there is address space again");
  free(block);
  blocks.free_all_but(0);
  return 0;
}

// There is no room for the stack of a thread that would return the memory.
SCENARIO(nothing_but_blocks) {
  const std::size_t before = committed();
  Blocks blocks;
  for (const std::size_t size : {MiB, 64 * KiB}) {
    while (blocks.keep(malloc(size))) {}
  }
  const std::size_t full = committed();
  NEED(full > before + 1000 * MiB, "only %zu MiB could be had", full / MiB);
  blocks.free_all_but(0);
  // The tables beside the memory, a fifteenth of it, may remain.
  NEED(eventually(5, [&] { return committed() < before + full / 8; }), "%zu of %zu MiB stay", committed() / MiB,
       full / MiB);
  return 0;
}

// Each time the block moves on, a little that was committed and never used stays behind it.
SCENARIO(one_after_growing) {
  std::size_t size = MiB;
  void* block = malloc(size);
  while (void* grown = realloc(block, size + size / 4)) {
    block = grown;
    size += size / 4;
  }
  free(block);
  block = malloc(size + size / 2);
  NEED(block, "after one of %zu MiB", size / MiB);
  free(block);
  return 0;
}

void take_the_rest() {
  for (std::size_t size = 256 * MiB; size >= 64 * KiB; size /= 2) {
    while (VirtualAlloc(nullptr, size, MEM_RESERVE, PAGE_NOACCESS)) {}
  }
}

bool view(DWORD size) {
  HANDLE section = CreateFileMappingW(INVALID_HANDLE_VALUE, nullptr, PAGE_READWRITE | SEC_RESERVE, 0, size, nullptr);
  return section && MapViewOfFile(section, FILE_MAP_READ, 0, 0, 0);
}

DWORD WINAPI sleep_on(void*) {
  Sleep(INFINITE);
  return 0;
}

int use_where_blocks_were(std::size_t survivors) {
  Blocks blocks;
  blocks.take(1400 * MiB);
  take_the_rest();
  blocks.free_all_but(survivors);
  NEED(view(300 * MiB), "at once");
  for (int made = 0; made < 100; ++made)
    NEED(CreateThread(nullptr, 0, sleep_on, nullptr, 0, nullptr), "after %d", made);
  return 0;
}

SCENARIO(use_after_all_was_freed) { return use_where_blocks_were(0); }
SCENARIO(use_beside_survivors) { return use_where_blocks_were(5); }

TEST(AddressSpace, WhatWasFreedIsThereForOthers) {
  if (!narrow) GTEST_SKIP() << "a 64-bit process has enough";
  EXPECT_SCENARIO("use_beside_survivors");
  EXPECT_SCENARIO("use_after_all_was_freed", {.environment = {{"REHEAP_DECAY_MS", "0"}}});
}

TEST(AddressSpace, WhatFilledItIsGivenBack) {
  if (!narrow) GTEST_SKIP() << "a 64-bit process has enough";
  if (!on_reheap()) GTEST_SKIP() << "the system's heap keeps it";
  EXPECT_SCENARIO("nothing_but_blocks");
}

TEST(AddressSpace, WhatABlockGrewThroughIsThereForALongerOne) {
  if (!narrow) GTEST_SKIP() << "a 64-bit process has enough";
  EXPECT_SCENARIO("one_after_growing");
}

TEST(AddressSpace, NoneLeft) {
  if (!narrow) GTEST_SKIP() << "a 64-bit process has enough";
  EXPECT_SCENARIO("no_address_space");
}

}  // namespace
