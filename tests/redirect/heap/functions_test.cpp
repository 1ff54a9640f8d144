// The functions by themselves, over ntdll's own as the originals: nothing is replaced in this process.
#include "redirect/heap/functions.h"

#include <windows.h>

#include <gtest/gtest.h>

#include "heap/heap.h"

namespace rh::heaps {
namespace {

class FunctionsTest : public testing::Test {
 protected:
  void SetUp() override {
    Originals originals;
    HMODULE ntdll = GetModuleHandleA("ntdll.dll");
    for (size_t i = 0; i < kRoles; ++i) {
      Role role = static_cast<Role>(i);
      originals[role] = reinterpret_cast<const void*>(GetProcAddress(ntdll, export_of(role).name));
    }
    ASSERT_EQ(heaps::begin(originals), nullptr);
  }

  template <typename Function> static Function* function(Role role) {
    return reinterpret_cast<Function*>(const_cast<void*>(replacement(role)));
  }

  HANDLE process_ = GetProcessHeap();
};

TEST_F(FunctionsTest, EveryRoleHasANameAndAFunction) {
  for (size_t i = 0; i < kRoles; ++i) {
    Role role = static_cast<Role>(i);
    EXPECT_EQ(std::string(export_of(role).name).substr(0, 3), "Rtl");
    for (size_t j = 0; j < i; ++j) EXPECT_NE(replacement(role), replacement(static_cast<Role>(j)));
  }
}

// Of functions that Wine's ntdll lacks.
TEST_F(FunctionsTest, ManyBlocksAreAllocatedAndFreedAtOnce) {
  auto* allocate = function<ULONG NTAPI(HANDLE, ULONG, SIZE_T, ULONG, void**)>(Role::multiple_allocate);
  auto* free = function<ULONG NTAPI(HANDLE, ULONG, ULONG, void**)>(Role::multiple_free);
  void* blocks[100] = {};
  ASSERT_EQ(allocate(process_, HEAP_ZERO_MEMORY, 200, 100, blocks), 100u);
  for (void* block : blocks) {
    EXPECT_TRUE(is_live(block));
    EXPECT_EQ(requested_size(block, "test"), 200u);
  }
  void* invalid = static_cast<char*>(blocks[10]) + 16;
  std::swap(invalid, blocks[10]);
  EXPECT_EQ(free(process_, 0, 100, blocks), 10u);
  std::swap(invalid, blocks[10]);
  EXPECT_EQ(free(process_, 0, 90, blocks + 10), 90u);
  for (void* block : blocks) EXPECT_FALSE(is_live(block));
  EXPECT_EQ(allocate(process_, 0, SIZE_MAX / 2, 3, blocks), 0u);
}

TEST_F(FunctionsTest, BlocksOfTheOriginalStayItsOwn) {
  auto* resize = function<void * NTAPI(HANDLE, ULONG, void*, SIZE_T)>(Role::reallocate);
  auto* size = function<SIZE_T NTAPI(HANDLE, ULONG, const void*)>(Role::size);
  auto* free = function<ULONG NTAPI(HANDLE, ULONG, void*)>(Role::free);
  void* block = HeapAlloc(process_, 0, 100);
  EXPECT_FALSE(in_realm(block));
  EXPECT_EQ(size(process_, 0, block), 100u);
  block = resize(process_, 0, block, 5000);
  EXPECT_FALSE(in_realm(block));
  EXPECT_EQ(HeapSize(process_, 0, block), 5000u);
  EXPECT_NE(free(process_, 0, block), 0u);
}

}  // namespace
}  // namespace rh::heaps
