// The functions by themselves, over ntdll's own as the originals: nothing is replaced in this process.
#include "redirect/heap/functions.h"

#include <windows.h>

#include <gtest/gtest.h>

#include "heap/heap.h"
#include "heap/limit.h"

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

// ---- when no memory is left ---------------------------------------------------------------------

// Of ntdll.
extern "C" {
__declspec(dllimport) LONG NTAPI LdrLockLoaderLock(ULONG flags, ULONG* state, ULONG_PTR* cookie);
__declspec(dllimport) LONG NTAPI LdrUnlockLoaderLock(ULONG flags, ULONG_PTR cookie);
}

class LoaderLock {
 public:
  LoaderLock() { LdrLockLoaderLock(0, nullptr, &cookie_); }
  ~LoaderLock() { LdrUnlockLoaderLock(0, cookie_); }

 private:
  ULONG_PTR cookie_ = 0;
};

// Takes blocks of ours until there is none, and frees them.
class FullTest : public FunctionsTest {
 protected:
  ~FullTest() override {
    while (blocks_ != nullptr) {
      void* block = blocks_;
      blocks_ = *static_cast<void**>(block);
      EXPECT_NE(free_(process_, 0, block), 0u);
    }
  }

  // What the first request gets for which there is none of ours.
  void* fill() {
    for (;;) {
      void* block = allocate_(process_, 0, kSize);
      if (block == nullptr || !in_realm(block)) return block;
      *static_cast<void**>(block) = blocks_;
      blocks_ = block;
    }
  }

  static constexpr SIZE_T kSize = 1000;

 private:
  void* NTAPI (*allocate_)(HANDLE, ULONG, SIZE_T) = function<void * NTAPI(HANDLE, ULONG, SIZE_T)>(Role::allocate);
  ULONG NTAPI (*free_)(HANDLE, ULONG, void*) = function<ULONG NTAPI(HANDLE, ULONG, void*)>(Role::free);
  void* blocks_ = nullptr;
};

// Or a thread that starts at the limit ends with the loader's lock.
TEST_F(FullTest, AtALimitTheOriginalServesTheLoaderAlone) {
  limit::Rule rule;
  rule.hard = {limit::Bound::Kind::bytes, 4 * limit::kLeast};
  limit::set(rule);
  EXPECT_EQ(fill(), nullptr);
  void* block = nullptr;
  {
    LoaderLock lock;
    block = fill();
  }
  limit::set({});
  ASSERT_NE(block, nullptr);
  EXPECT_GE(HeapSize(process_, 0, block), kSize);
  EXPECT_TRUE(HeapFree(process_, 0, block));
}

#if !defined(_WIN64)
// All addresses but those that are taken already, as by a program that makes threads until it can make no more. What
// the start of a thread allocates is there all the same, or the thread ends with the loader's lock.
class Addresses {
 public:
  Addresses() {
    for (SIZE_T size = 1u << 30; size >= kGranule; size /= 2)
      while (count_ < kMost && (taken_[count_] = VirtualAlloc(nullptr, size, MEM_RESERVE, PAGE_NOACCESS)) != nullptr)
        ++count_;
  }
  ~Addresses() {
    while (count_ != 0) VirtualFree(taken_[--count_], 0, MEM_RELEASE);
  }

 private:
  static constexpr SIZE_T kGranule = 65536;
  static constexpr size_t kMost = 10000;
  void* taken_[kMost];
  size_t count_ = 0;
};

TEST_F(FullTest, WhereNoAddressIsLeftTheOriginalServesTheLoader) {
  constexpr SIZE_T kRoom = 200'000;
  HeapFree(process_, 0, HeapAlloc(process_, 0, kRoom));  // which stays the original's
  void* block = nullptr;
  void* without_lock = nullptr;
  {
    Addresses all;
    without_lock = fill();
    LoaderLock lock;
    block = fill();
  }
  EXPECT_EQ(without_lock, nullptr);
  ASSERT_NE(block, nullptr);
  EXPECT_GE(HeapSize(process_, 0, block), kSize);
  EXPECT_TRUE(HeapFree(process_, 0, block));
}
#endif

}  // namespace
}  // namespace rh::heaps
