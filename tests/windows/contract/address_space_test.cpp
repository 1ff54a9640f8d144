// No address space left: only a 32-bit process comes there.
#include <gtest/gtest.h>
#include <windows.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "support/library.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

SCENARIO(no_address_space) {
  std::vector<void*> taken;
  taken.reserve(100000);
  for (std::size_t size = 256 * MiB; size >= 64 * KiB; size /= 2) {
    while (void* part = VirtualAlloc(nullptr, size, MEM_RESERVE, PAGE_NOACCESS)) {
      taken.push_back(part);
    }
  }
  void* chain = nullptr;
  for (;;) {
    errno = 0;
    auto** block = static_cast<void**>(malloc(100 * KiB));
    if (!block) break;
    *block = chain;
    chain = block;
  }
  NEED(errno == ENOMEM, "errno is %d", errno);
  for (void* part : taken) VirtualFree(part, 0, MEM_RELEASE);
  void* block = malloc(64 * MiB);
  NEED(block, "there is address space again");
  free(block);
  while (chain) {
    void* next = *static_cast<void**>(chain);
    free(chain);
    chain = next;
  }
  return 0;
}

TEST(AddressSpace, NoneLeft) {
  if (!narrow) GTEST_SKIP() << "a 64-bit process has enough";
  EXPECT_SCENARIO("no_address_space");
}

}  // namespace
