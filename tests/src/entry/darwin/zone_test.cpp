// The malloc zone, on any system: what Darwin's malloc and its tools would ask of it.
#include "entry/darwin/zone.h"

#include <gtest/gtest.h>
#include <mach/mach_init.h>

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "arena/realm.h"
#include "entry/darwin/zones.h"
#include "entry/foreign.h"
#include "heap/guards.h"
#include "heap/heap.h"
#include "heap/stats.h"
#include "platform/fake/fake.h"
#include "reheap/reheap.h"
#include "support/heaps.h"

namespace rh {
namespace {

malloc_zone_t* ours() {
  if (!zone::stands_first()) zone::stand_first();
  return zones::registered().front();
}

bool reads_zero(const void* block, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(block);
  for (size_t at = 0; at < size; ++at)
    if (bytes[at] != 0) return false;
  return true;
}

using Found = std::map<uintptr_t, size_t>;

Found enumerate() {
  Found found;
  auto record = [](task_t, void* context, unsigned type, vm_range_t* ranges, unsigned count) {
    EXPECT_EQ(type, MALLOC_PTR_IN_USE_RANGE_TYPE);
    for (unsigned at = 0; at < count; ++at)
      EXPECT_TRUE(static_cast<Found*>(context)->emplace(ranges[at].address, ranges[at].size).second);
  };
  malloc_zone_t* zone = ours();
  EXPECT_EQ(zone->introspect->enumerator(mach_task_self(), &found, MALLOC_PTR_IN_USE_RANGE_TYPE,
                                         reinterpret_cast<vm_address_t>(zone), nullptr, record),
            KERN_SUCCESS);
  return found;
}

using Held = std::set<uintptr_t>;

void expect_found(const Held& held) {
  malloc_zone_t* zone = ours();
  const Found found = enumerate();
  EXPECT_EQ(found.size(), held.size());
  for (uintptr_t block : held) {
    auto at = found.find(block);
    ASSERT_NE(at, found.end()) << std::hex << block;
    EXPECT_EQ(at->second, zone->size(zone, reinterpret_cast<void*>(block)));
  }
}

TEST(Zone, StandsFirstAndTheOthersStay) {
  EXPECT_FALSE(zone::stands_first());
  malloc_zone_t* zone = ours();
  EXPECT_TRUE(zone::stands_first());
  EXPECT_NE(zone, zones::of_system());
  EXPECT_STREQ(zone->zone_name, "reheap");
  EXPECT_EQ(zones::registered().size(), 3u);
  EXPECT_EQ(std::set(zones::registered().begin(), zones::registered().end()).size(), 3u);
  // Made while the system's zone was the first, which it takes its memory from.
  EXPECT_EQ(zones::purgeable_over(), zones::of_system());
}

TEST(Zone, StandsFirstThoughOthersComeMeanwhile) {
  zones::disturb(1);
  malloc_zone_t* zone = ours();
  EXPECT_STREQ(zone->zone_name, "reheap");
  EXPECT_EQ(zones::registered().size(), 4u);
}

TEST(Zone, GivesUpWhereOthersNeverLeaveTheFirstPlace) {
  zones::disturb(1000);
  zone::stand_first();
  EXPECT_FALSE(zone::stands_first());
  EXPECT_NE(std::string(fake::errors()).find("keeps the system's malloc"), std::string::npos);
  // Nobody is to ask it for anything then.
  for (malloc_zone_t* zone : zones::registered()) EXPECT_STRNE(zone->zone_name, "reheap");
}

TEST(Zone, EveryFunctionThatItsVersionNeedsIsThere) {
  const malloc_zone_t& zone = *ours();
  EXPECT_EQ(zone.version, 13u);
  for (const void* function :
       {reinterpret_cast<const void*>(zone.size), reinterpret_cast<const void*>(zone.destroy),
        reinterpret_cast<const void*>(zone.batch_free), reinterpret_cast<const void*>(zone.claimed_address),
        reinterpret_cast<const void*>(zone.introspect->reinit_lock),
        reinterpret_cast<const void*>(zone.introspect->print_task),
        reinterpret_cast<const void*>(zone.introspect->task_statistics)})
    EXPECT_NE(function, nullptr);
}

TEST(Zone, BlocksAreMadeResizedAndFreed) {
  malloc_zone_t* zone = ours();
  auto* block = static_cast<unsigned char*>(zone->malloc(zone, 100));
  ASSERT_NE(block, nullptr);
  EXPECT_GE(zone->size(zone, block), 100u);
  EXPECT_TRUE(rh_owns(block));
  memset(block, 7, 100);
  block = static_cast<unsigned char*>(zone->realloc(zone, block, 100000));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block[99], 7);
  EXPECT_GE(zone->size(zone, block), 100000u);
  zone->free(zone, block);
  EXPECT_EQ(zone->size(zone, block), 0u);
  void* zeros = zone->calloc(zone, 30, 40);
  EXPECT_TRUE(reads_zero(zeros, 1200));
  zone->free_definite_size(zone, zeros, 1200);
  EXPECT_EQ(zone->size(zone, zeros), 0u);
  void* page = zone->valloc(zone, 10);
  EXPECT_EQ(address_of(page) % platform::page_size(), 0u);
  zone->free(zone, page);
  zone->free(zone, nullptr);
  EXPECT_EQ(zones::freed(), 0);
}

// On Darwin realloc to no bytes gives a block, and so malloc of none; one that is null is a lack of memory.
TEST(Zone, NoBytesAreABlockToo) {
  malloc_zone_t* zone = ours();
  void* block = zone->realloc(zone, zone->malloc(zone, 100), 0);
  ASSERT_NE(block, nullptr);
  EXPECT_NE(zone->size(zone, block), 0u);
  zone->free(zone, block);
  block = zone->realloc(zone, nullptr, 0);
  EXPECT_NE(block, nullptr);
  zone->free(zone, block);
}

TEST(Zone, WhatCannotBeIsRefusedWithErrno) {
  malloc_zone_t* zone = ours();
  volatile size_t huge = SIZE_MAX / 2 + 1;
  for (void* (*call)(malloc_zone_t*, size_t) : {zone->malloc, zone->valloc}) {
    errno = 0;
    EXPECT_EQ(call(zone, huge), nullptr);
    EXPECT_EQ(errno, ENOMEM);
  }
  errno = 0;
  EXPECT_EQ(zone->calloc(zone, huge, 4), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

TEST(Zone, AlignmentsAreKeptAndBadOnesRefused) {
  malloc_zone_t* zone = ours();
  for (size_t alignment = 1; alignment <= 1u << 20; alignment *= 2) {
    void* block = zone->memalign(zone, alignment, 24);
    ASSERT_NE(block, nullptr) << alignment;
    EXPECT_EQ(address_of(block) % alignment, 0u);
    EXPECT_GE(zone->size(zone, block), 24u);
    zone->free(zone, block);
  }
  for (size_t alignment : {size_t{0}, size_t{3}, size_t{24}, SIZE_MAX})
    EXPECT_EQ(zone->memalign(zone, alignment, 8), nullptr);
  EXPECT_EQ(zone->memalign(zone, size_t{1} << (8 * sizeof(size_t) - 1), 8), nullptr);
}

TEST(Zone, TheSizeOfWhatIsNoBlockIsNone) {
  malloc_zone_t* zone = ours();
  int on_stack = 0;
  auto* small = static_cast<char*>(zone->malloc(zone, 64));
  auto* large = static_cast<char*>(zone->malloc(zone, 300000));
  void* theirs = zones::made(64);
  for (const void* pointer : {static_cast<const void*>(nullptr), static_cast<const void*>(&on_stack),
                              static_cast<const void*>(small + 16), static_cast<const void*>(small + 1),
                              static_cast<const void*>(large + 16), static_cast<const void*>(large + 200000),
                              static_cast<const void*>(theirs), reinterpret_cast<const void*>(UINTPTR_MAX)})
    EXPECT_EQ(zone->size(zone, pointer), 0u) << pointer;
  EXPECT_TRUE(zone->claimed_address(zone, small + 1));
  EXPECT_TRUE(zone->claimed_address(zone, large + 200000));
  EXPECT_FALSE(zone->claimed_address(zone, theirs));
  EXPECT_FALSE(zone->claimed_address(zone, nullptr));
}

// Guarded blocks are as long as was asked for.
TEST(Zone, GuardedBlocksHaveASizeToo) {
  if (!guards::are_possible()) GTEST_SKIP();
  malloc_zone_t* zone = ours();
  guards::set_every(1);
  Held held;
  for (size_t size : {0, 1, 100, 5000}) {
    void* block = zone->malloc(zone, size);
    EXPECT_GE(zone->size(zone, block), 1u) << size;
    EXPECT_TRUE(held.insert(address_of(block)).second);
  }
  EXPECT_NE(guards::figures().live, 0u);
  expect_found(held);
  for (uintptr_t block : held) {
    zone->free(zone, reinterpret_cast<void*>(block));
    EXPECT_EQ(zone->size(zone, reinterpret_cast<void*>(block)), 0u);
  }
  expect_found({});
}

TEST(Zone, BatchesSayHowManyTheyAre) {
  malloc_zone_t* zone = ours();
  std::vector<void*> blocks(300);
  ASSERT_EQ(zone->batch_malloc(zone, 48, blocks.data(), 300), 300u);
  EXPECT_EQ(std::set(blocks.begin(), blocks.end()).size(), 300u);
  for (void* block : blocks) EXPECT_GE(zone->size(zone, block), 48u);
  zone->batch_free(zone, blocks.data(), 300);
  void* none[2] = {};
  EXPECT_EQ(zone->batch_malloc(zone, SIZE_MAX / 2 + 1, none, 2), 0u);
  EXPECT_EQ(zone->batch_malloc(zone, 8, none, 0), 0u);
  zone->batch_free(zone, none, 0);
}

TEST(Zone, TheMakerOfAForeignBlockIsFound) {
  ours();
  void* block = zones::made(40);
  EXPECT_EQ(zone::maker_of(block), zones::of_system());
  int on_stack = 0;
  EXPECT_EQ(zone::maker_of(&on_stack), nullptr);
  void* own = rh_malloc(40);
  EXPECT_EQ(zone::maker_of(own), ours());
  rh_free(own);
  zones::of_system()->free(zones::of_system(), block);
}

// ---- what tools ask -----------------------------------------------------------------------------

TEST(Zone, TheEnumeratorTellsOfExactlyWhatIsLive) {
  malloc_zone_t* zone = ours();
  expect_found({});
  Held held;
  std::vector<void*> freed;
  for (size_t size = 1; size < 200000; size += size / 3 + 1) {
    for (int count = 0; count < 20; ++count) {
      void* block = zone->malloc(zone, size);
      memset(block, 0xff, size);
      if (count % 3 == 1)
        freed.push_back(block);
      else
        held.insert(address_of(block));
    }
  }
  for (void* block : freed) zone->free(zone, block);
  expect_found(held);
  // Pages within slabs went back, with the blocks on them.
  zone->pressure_relief(zone, 0);
  expect_found(held);
  for (uintptr_t block : held) zone->free(zone, reinterpret_cast<void*>(block));
  expect_found({});
}

// What one thread frees of another's is on its way for a while, and told by a block without a mark.
TEST(Zone, TheEnumeratorKnowsBlocksOnTheirWayToTheirOwner) {
  malloc_zone_t* zone = ours();
  Actor one, other;
  Held held;
  for (size_t size : {16, 32, 500, 3000}) {
    std::vector<void*> freed;
    one([&] {
      for (int count = 0; count < 2000; ++count) {
        void* block = zone->malloc(zone, size);
        if (count % 5 == 0)
          held.insert(address_of(block));
        else
          freed.push_back(block);
      }
    });
    // Some by the test's thread, which goes on, some by one that does nothing more.
    for (size_t at = 0; at < freed.size() / 2; ++at) zone->free(zone, freed[at]);
    other([&] {
      for (size_t at = freed.size() / 2; at < freed.size(); ++at) zone->free(zone, freed[at]);
    });
    expect_found(held);
  }
  // Live blocks whose words look like what tells of others.
  for (uintptr_t block : held) {
    const uint64_t words[] = {0, 0x10001};
    memcpy(reinterpret_cast<void*>(block), words, sizeof(words));
  }
  expect_found(held);
}

TEST(Zone, OfAnotherProcessTheEnumeratorTellsNothing) {
  malloc_zone_t* zone = ours();
  void* block = zone->malloc(zone, 10);
  auto never = [](task_t, void*, unsigned, vm_range_t*, unsigned) { ADD_FAILURE(); };
  EXPECT_EQ(zone->introspect->enumerator(77, nullptr, MALLOC_PTR_IN_USE_RANGE_TYPE, 0, nullptr, never), KERN_FAILURE);
  EXPECT_EQ(zone->introspect->enumerator(mach_task_self(), nullptr, MALLOC_PTR_REGION_RANGE_TYPE, 0, nullptr, never),
            KERN_SUCCESS);
  zone->free(zone, block);
}

TEST(Zone, StatisticsGrowWithWhatIsHeld) {
  malloc_zone_t* zone = ours();
  malloc_statistics_t before = {}, after = {}, others = {1, 1, 1, 1};
  zone->introspect->statistics(zone, &before);
  void* block = zone->malloc(zone, 1000000);
  zone->introspect->statistics(zone, &after);
  EXPECT_GE(after.size_in_use, before.size_in_use + 1000000);
  EXPECT_GE(after.size_allocated, after.size_in_use);
  EXPECT_GE(after.max_size_in_use, after.size_allocated);
  EXPECT_EQ(after.blocks_in_use, before.blocks_in_use + 1);
  zone->introspect->task_statistics(77, 0, nullptr, &others);
  EXPECT_EQ(others.size_in_use, 0u);
  zone->free(zone, block);
}

TEST(Zone, GoodSizesAreWhatBlocksHaveAtLeast) {
  malloc_zone_t* zone = ours();
  for (size_t size : {1, 17, 1000, 50000, 1000001}) {
    void* block = zone->malloc(zone, size);
    EXPECT_GE(zone->introspect->good_size(zone, size), size);
    EXPECT_LE(zone->introspect->good_size(zone, size), zone->size(zone, block));
    zone->free(zone, block);
  }
  EXPECT_TRUE(zone->introspect->check(zone));
}

TEST(Zone, MemoryGoesBackUnderPressure) {
  malloc_zone_t* zone = ours();
  void* block = zone->malloc(zone, 8 << 20);
  memset(block, 1, 8 << 20);
  zone->free(zone, block);
  EXPECT_GE(zone->pressure_relief(zone, 0), size_t{8} << 20);
}

// ---- forks --------------------------------------------------------------------------------------

TEST(Zone, IsLockedAroundAForkAndGoesOnBehindIt) {
  malloc_zone_t* zone = ours();
  void* block = zone->malloc(zone, 100);
  EXPECT_FALSE(zone->introspect->zone_locked(zone));
  zone->introspect->force_lock(zone);
  EXPECT_TRUE(zone->introspect->zone_locked(zone));
  EXPECT_TRUE(g_arena.lock().held_by(kForkToken));
  // Tools look while it is locked.
  EXPECT_EQ(enumerate().count(address_of(block)), 1u);
  zone->introspect->force_unlock(zone);
  EXPECT_FALSE(zone->introspect->zone_locked(zone));
  EXPECT_FALSE(g_arena.lock().held_by(kForkToken));
  zone->free(zone, block);
  // As the child would.
  zone->introspect->force_lock(zone);
  zone->introspect->reinit_lock(zone);
  EXPECT_FALSE(zone->introspect->zone_locked(zone));
  EXPECT_FALSE(g_arena.lock().held_by(kForkToken));
  block = zone->malloc(zone, 100000);
  EXPECT_NE(block, nullptr);
  zone->free(zone, block);
}

}  // namespace
}  // namespace rh
