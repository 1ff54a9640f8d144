// Address space and pages, across several reservations too, and every way the system refuses.
#include <gtest/gtest.h>

#include <cstdint>

#include "last_error.h"
#include "platform/platform.h"
#include "support/pages.h"

namespace rh {
namespace {

using namespace platform;

constexpr size_t kSize = 4 * kReserveGrain;

MEMORY_BASIC_INFORMATION at(uintptr_t address) {
  MEMORY_BASIC_INFORMATION found = {};
  EXPECT_NE(VirtualQuery(pointer_to(address), &found, sizeof found), 0u);
  return found;
}

// Whether all of the range is in one state, in one or several reservations.
bool is_all(DWORD state, uintptr_t address, size_t size) {
  for (uintptr_t end = address + size; address < end;) {
    MEMORY_BASIC_INFORMATION found = at(address);
    if (found.State != state) return false;
    address = reinterpret_cast<uintptr_t>(found.BaseAddress) + found.RegionSize;
  }
  return true;
}

// Contiguous reservations of kSize.
class Neighbours {
 public:
  explicit Neighbours(size_t count) : size_(count * kSize) {
    for (int attempt = 0; attempt < 100 && address_ == 0; ++attempt) take(count);
    EXPECT_NE(address_, 0u);
  }
  ~Neighbours() { release(address_, size_); }
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  uintptr_t address() const { return address_; }
  size_t size() const { return size_; }

 private:
  // Other threads of the process may be quicker.
  void take(size_t count) {
    uintptr_t found = reserve(size_, kPageSize);
    release(found, size_);
    for (size_t index = 0; index < count; ++index) {
      if (reserve_at(found + index * kSize, kSize) == Reserve::done) continue;
      return release(found, index * kSize);
    }
    address_ = found;
  }

  size_t size_;
  uintptr_t address_ = 0;
};

TEST(Memory, ReservedIsNotCommitted) {
  uintptr_t address = reserve(kSize, kPageSize);
  ASSERT_NE(address, 0u);
  EXPECT_TRUE(is_all(MEM_RESERVE, address, kSize));
  release(address, kSize);
  EXPECT_TRUE(is_all(MEM_FREE, address, kSize));
}

TEST(Memory, ReadsAsZeroWhenCommittedAndCommittedAgain) {
  uintptr_t address = reserve(kSize, kPageSize);
  for (uint64_t round = 1; round < 4; ++round) {
    ASSERT_TRUE(commit(address, kSize));
    EXPECT_TRUE(pages::are_zero(address, kSize));
    pages::mark(address, kSize, round);
    EXPECT_TRUE(pages::are_marked(address, kSize, round));
    ASSERT_EQ(purge(address, kSize), Purged::uncommitted);
    EXPECT_TRUE(is_all(MEM_RESERVE, address, kSize));
  }
  release(address, kSize);
}

TEST(Memory, PurgedInTheMiddleKeepsItsNeighbours) {
  uintptr_t address = reserve(kSize, kPageSize), middle = address + 3 * kPageSize;
  ASSERT_TRUE(commit(address, kSize));
  pages::mark(address, kSize, 1);
  ASSERT_EQ(purge(middle, 2 * kPageSize), Purged::uncommitted);
  EXPECT_TRUE(is_all(MEM_RESERVE, middle, 2 * kPageSize));
  ASSERT_TRUE(commit(middle, 2 * kPageSize));
  EXPECT_TRUE(pages::are_zero(middle, 2 * kPageSize));
  uintptr_t behind = middle + 2 * kPageSize;
  EXPECT_TRUE(pages::are_marked(address, middle - address, 1));
  EXPECT_TRUE(pages::are_marked(behind, address + kSize - behind, 1));
  release(address, kSize);
}

TEST(Memory, CommittedTwiceKeepsWhatIsThere) {
  uintptr_t address = reserve(kSize, kPageSize);
  ASSERT_TRUE(commit(address, kPageSize));
  pages::mark(address, kPageSize, 1);
  ASSERT_TRUE(commit(address, kSize));
  EXPECT_TRUE(pages::are_marked(address, kPageSize, 1));
  release(address, kSize);
}

TEST(Memory, IsReservedWhereItIsWanted) {
  uintptr_t address = reserve(kSize, kPageSize);
  EXPECT_EQ(reserve_at(address, kSize), Reserve::occupied);
  EXPECT_EQ(reserve_at(address + kReserveGrain, kReserveGrain), Reserve::occupied);
  release(address, kSize);
  EXPECT_EQ(reserve_at(address, kSize), Reserve::done);
  EXPECT_TRUE(is_all(MEM_RESERVE, address, kSize));
  release(address, kSize);
}

TEST(Memory, BetweenTheSystemsSixtyFourKilobytesNothingIsTaken) {
  uintptr_t address = reserve(kSize, kPageSize);
  release(address, kSize);
  EXPECT_EQ(reserve_at(address + kPageSize, kReserveGrain), Reserve::occupied);
  EXPECT_TRUE(is_all(MEM_FREE, address, kSize));
}

TEST(Memory, OutsideTheProcessNothingIsTaken) {
  constexpr uintptr_t kLast = UINTPTR_MAX - UINTPTR_MAX % kReserveGrain;
  // Wine grants a 32-bit program the upper half.
  if (sizeof(void*) == 8) EXPECT_NE(KEEPING_LAST_ERROR(reserve_at(kLast, kReserveGrain)), Reserve::done);
  EXPECT_NE(KEEPING_LAST_ERROR(reserve_at(kLast / 2 + 1, kLast / 2)), Reserve::done);
}

TEST(Memory, MoreThanThereIsIsRefused) {
  constexpr size_t kAll = SIZE_MAX - SIZE_MAX % kReserveGrain;
  EXPECT_EQ(KEEPING_LAST_ERROR(reserve(kAll, kPageSize)), 0u);
  EXPECT_EQ(KEEPING_LAST_ERROR(reserve(kAll / 2, kAll / 2 + kReserveGrain)), 0u);
  EXPECT_EQ(KEEPING_LAST_ERROR(reserve(kAll, 16 * kReserveGrain)), 0u);
}

TEST(Memory, AlignmentsAreKept) {
  for (size_t alignment = kPageSize; alignment <= size_t{64} << 20; alignment *= 2) {
    uintptr_t address = KEEPING_LAST_ERROR(reserve(kSize, alignment));
    ASSERT_NE(address, 0u);
    EXPECT_EQ(address % alignment, 0u);
    // It is a reservation of its own; the larger one in which it was found is gone.
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at(address).AllocationBase), address);
    EXPECT_TRUE(is_all(MEM_RESERVE, address, kSize));
    EXPECT_NE(reinterpret_cast<uintptr_t>(at(address + kSize).AllocationBase), address);
    release(address, kSize);
    EXPECT_TRUE(is_all(MEM_FREE, address, kSize));
  }
}

TEST(Memory, SeveralReservationsAreOneRange) {
  Neighbours range(3);
  ASSERT_TRUE(commit(range.address(), range.size()));
  EXPECT_TRUE(is_all(MEM_COMMIT, range.address(), range.size()));
  pages::mark(range.address(), range.size(), 1);
  EXPECT_TRUE(pages::are_marked(range.address(), range.size(), 1));
  ASSERT_EQ(purge(range.address(), range.size()), Purged::uncommitted);
  EXPECT_TRUE(is_all(MEM_RESERVE, range.address(), range.size()));
  ASSERT_TRUE(commit(range.address(), range.size()));
  EXPECT_TRUE(pages::are_zero(range.address(), range.size()));
}

TEST(Memory, ARangeMayBeginAndEndAmidReservations) {
  Neighbours all(3);
  uintptr_t address = all.address() + kSize - kPageSize;
  constexpr size_t kLength = kSize + 2 * kPageSize;
  ASSERT_TRUE(commit(address, kLength));
  EXPECT_TRUE(is_all(MEM_RESERVE, all.address(), kSize - kPageSize));
  EXPECT_TRUE(is_all(MEM_COMMIT, address, kLength));
  EXPECT_TRUE(is_all(MEM_RESERVE, address + kLength, kSize - kPageSize));
  pages::mark(address, kLength, 1);
  ASSERT_EQ(purge(address + kPageSize, kSize), Purged::uncommitted);
  EXPECT_TRUE(pages::are_marked(address, kPageSize, 1));
  EXPECT_TRUE(pages::are_marked(address + kPageSize + kSize, kPageSize, 1));
}

// As the realm calls it: parts are already committed when the rest is.
TEST(Memory, PartsThatAreCommittedStayWhenTheRestIs) {
  Neighbours range(3);
  uintptr_t middle = range.address() + kSize;
  ASSERT_TRUE(commit(middle - kPageSize, 2 * kPageSize));
  pages::mark(middle - kPageSize, 2 * kPageSize, 1);
  ASSERT_TRUE(commit(range.address(), range.size()));
  EXPECT_TRUE(pages::are_marked(middle - kPageSize, 2 * kPageSize, 1));
}

TEST(Memory, ReleasesAllReservationsOfARangeAndNoOther) {
  Neighbours outer(4);
  uintptr_t inner = outer.address() + kSize;
  ASSERT_TRUE(commit(outer.address(), outer.size()));
  release(inner, 2 * kSize);
  EXPECT_TRUE(is_all(MEM_FREE, inner, 2 * kSize));
  EXPECT_TRUE(is_all(MEM_COMMIT, outer.address(), kSize));
  EXPECT_TRUE(is_all(MEM_COMMIT, inner + 2 * kSize, kSize));
  release(inner + 2 * kSize, kSize);
  ASSERT_EQ(reserve_at(inner, 3 * kSize), Reserve::done);  // for the destructor of the range
}

TEST(Memory, ACommitThatFailsLeavesNothingCommitted) {
  Neighbours range(3);
  release(range.address() + 2 * kSize, kSize);
  EXPECT_FALSE(KEEPING_LAST_ERROR(commit(range.address(), range.size())));
  EXPECT_TRUE(is_all(MEM_RESERVE, range.address(), 2 * kSize));
  EXPECT_FALSE(KEEPING_LAST_ERROR(commit(range.address() + kSize, 2 * kSize)));
  EXPECT_TRUE(is_all(MEM_RESERVE, range.address(), 2 * kSize));
  EXPECT_FALSE(KEEPING_LAST_ERROR(commit(range.address() + 2 * kSize, kPageSize)));
  ASSERT_EQ(reserve_at(range.address() + 2 * kSize, kSize), Reserve::done);
}

TEST(Memory, WhatIsNoMemoryIsKeptAndNotReleased) {
  uintptr_t address = reserve(kSize, kPageSize);
  release(address, kSize);
  EXPECT_EQ(KEEPING_LAST_ERROR(purge(address, kSize)), Purged::kept);
  KEEPING_LAST_ERROR(release(address, kSize));
  EXPECT_TRUE(is_all(MEM_FREE, address, kSize));
}

TEST(Memory, TheLastErrorIsKept) {
  uintptr_t address = KEEPING_LAST_ERROR(reserve(kSize, kPageSize));
  EXPECT_EQ(KEEPING_LAST_ERROR(reserve_at(address, kSize)), Reserve::occupied);
  EXPECT_TRUE(KEEPING_LAST_ERROR(commit(address, kSize)));
  EXPECT_EQ(KEEPING_LAST_ERROR(purge(address, kSize)), Purged::uncommitted);
  KEEPING_LAST_ERROR(release(address, kSize));
  Neighbours range(2);
  EXPECT_TRUE(KEEPING_LAST_ERROR(commit(range.address(), range.size())));
  EXPECT_EQ(KEEPING_LAST_ERROR(purge(range.address(), range.size())), Purged::uncommitted);
}

// The layers above copy and zero-fill themselves.
TEST(Memory, PagesAreNeitherMovedNorReplaced) {
  Neighbours range(2);
  ASSERT_TRUE(commit(range.address(), range.size()));
  pages::mark(range.address(), range.size(), 1);
  EXPECT_EQ(move_pages(range.address(), range.address() + kSize, kSize), Moved::refused);
  EXPECT_FALSE(replace_by_zeros(range.address(), kSize));
  EXPECT_TRUE(pages::are_marked(range.address(), range.size(), 1));
}

TEST(Memory, EveryCallIsCounted) {
  size_t before[static_cast<size_t>(OsCall::count)];
  for (size_t kind = 0; kind < static_cast<size_t>(OsCall::count); ++kind)
    before[kind] = os_calls(static_cast<OsCall>(kind));
  uintptr_t address = reserve(kSize, kPageSize);
  commit(address, kSize);
  purge(address, kSize);
  release(address, kSize);
  for (OsCall kind : {OsCall::reserve, OsCall::commit, OsCall::purge, OsCall::release})
    EXPECT_EQ(os_calls(kind), before[static_cast<size_t>(kind)] + 1) << os_call_name(kind);
}

}  // namespace
}  // namespace rh
