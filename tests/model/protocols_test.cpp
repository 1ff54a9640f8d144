// The protocols between threads, in all orders with up to so many preemptions: nothing waits for ever, no block is lost
// or handed out twice, and the books balance.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "books.h"
#include "heap/idle.h"
#include "heap/regions.h"
#include "heap/registry.h"
#include "heap/remote.h"
#include "heap/shared.h"
#include "scheduler.h"
#include "support/heaps.h"

namespace rh::model {

namespace {

// What the threads of a program have in their hands.
struct Slot {
  void* block = nullptr;
  size_t size = 0;
};
constexpr size_t kSlots = 64;
Slot slots[kSlots];

unsigned seed_of(const Slot& slot) { return static_cast<unsigned>(&slot - slots) + 1; }

void check(const Slot& slot) {
  if (!intact(slot.block, slot.size, seed_of(slot))) fail("a block's content was changed");
}

void take(size_t number, size_t size) {
  Slot& slot = slots[number];
  void* block = allocate(size);
  MODEL_NEED(block != nullptr);
  fill(block, size, seed_of(slot));
  slot = {block, size};
}

void drop(size_t number) {
  Slot given = slots[number];
  check(slots[number]);
  slots[number] = {};
  deallocate(given.block);
}

void take_some(size_t first, size_t count, size_t size) {
  for (size_t number = first; number < first + count; ++number) take(number, size);
}

void drop_some(size_t first, size_t count) {
  for (size_t number = first; number < first + count; ++number) drop(number);
}

void send_all() { post_all(own_heap()); }

void check_all() {
  for (const Slot& slot : slots) {
    if (slot.block == nullptr) continue;
    check(slot);
    note_held(slot.block);
  }
  check_books();
}

// Eight to a slab of one unit, and past the table of the fast path.
constexpr size_t kSmall = 2048;
constexpr size_t kLarge = 256 * 1024;

// ---- remote frees, the inbox, help --------------------------------------------------------------

void own_twelve() {
  registry::loaded();
  play(0, [] { take_some(0, 12, kSmall); });
}

void free_and_allocate_own() {
  drop_some(0, 2);
  take_some(12, 2, kSmall);
}

void free_anothers() {
  drop_some(2, 4);
  send_all();
}

void collect_everything() { idle::trim(); }

const Program kRemoteFree = {own_twelve, {free_and_allocate_own, free_anothers, collect_everything}, check_all};

// ---- spans from afar ----------------------------------------------------------------------------

// Of three units.
constexpr size_t kMedium = 40000;

void own_four_spans() {
  registry::loaded();
  play(0, [] { take_some(0, 4, kMedium); });
}

void replace_own_span() {
  drop(0);
  take(4, kMedium);
}

void free_anothers_spans() { drop_some(1, 2); }

const Program kRemoteSpans = {
    own_four_spans, {replace_own_span, free_anothers_spans, [] { drop(3); }, collect_everything}, check_all};

// ---- adoption -----------------------------------------------------------------------------------

// In slabs of two units, four, six and so on.
constexpr size_t kLeft = 30 * 1024;

// The first thread's next slab is longer than any span that its store has ready.
void leave_twelve_behind() {
  registry::loaded();
  play(0, [] {
    take(30, 16);
    take_some(32, 1 + 2 + 3 + 4, kLeft);
  });
  play(1, [] { take(31, 16); });
  Actor gone;
  gone([] { take_some(0, 12, kLeft); });
  gone.end();
  play(0, [] { take(12, kSmall); });
}

// Its class needs a slab, and the next heap to be looked at is the one left behind.
void look_at_the_heap_left_behind() { take(14, kLeft); }

// So that the two programs below are about what they say.
void adopt() {
  look_at_the_heap_left_behind();
  MODEL_NEED(owner_of(slab_of(slots[11].block)) == thread_heap());
}

const Program kAdoption = {
    leave_twelve_behind, {look_at_the_heap_left_behind, free_anothers, [] { take_some(16, 2, kSmall); }}, check_all};

// ---- fork ---------------------------------------------------------------------------------------

// What a child finds it can use, and goes on with threads of its own.
[[noreturn]] void live_on_as_child() {
  for (size_t thread = 0; thread < 3; ++thread) {
    Actor actor;
    actor([] {
      void* blocks[16];
      for (unsigned number = 0; number < 16; ++number) {
        size_t size = number % 8 == 0 ? kLarge : kSmall;
        blocks[number] = allocate(size);
        MODEL_NEED(blocks[number] != nullptr);
        fill(blocks[number], size, number + 100);
      }
      for (const Slot& slot : slots)
        if (slot.block != nullptr) check(slot);
      for (unsigned number = 0; number < 16; number += 2) {
        size_t size = number % 8 == 0 ? kLarge : kSmall;
        if (!intact(blocks[number], size, number + 100)) fail("a child's block was changed");
        deallocate(blocks[number]);
      }
    });
  }
  for (const Slot& slot : slots)
    if (slot.block != nullptr) deallocate(slot.block);
  idle::trim();
  _exit(0);
}

void fork_once() {
  pid_t child = fork();
  if (child == 0) live_on_as_child();
  int status = 0;
  MODEL_NEED(child > 0 && waitpid(child, &status, 0) == child);
  if (status != 0) _exit(1);  // it has said why
}

const Program kFork = {own_twelve, {free_and_allocate_own, free_anothers, fork_once}, check_all};

const Program kForkAndAdoption = {leave_twelve_behind, {look_at_the_heap_left_behind, fork_once}, check_all};

// ---- purging ------------------------------------------------------------------------------------

// All the memory that may be had is free, and dirty.
void free_all_there_is() {
  registry::loaded();
  play(0, [] {
    take(0, kLarge);
    drop(0);
  });
  fake::limit_committed(fake::committed_bytes());
}

void purge() { g_arena.purge(0); }

const Program kPurge = {free_all_there_is,
                        {[] {
                           take(0, kLarge);
                           drop(0);
                           take(1, kLarge);
                         },
                         purge},
                        check_all};

// As above, with a page that stays where it is.
void free_all_with_a_locked_page() {
  registry::loaded();
  play(0, [] {
    take(0, kLarge);
    uintptr_t page = align_up(address_of(slots[0].block) + kLarge / 2, platform::kPageSize);
    fake::lock_pages(page, platform::kPageSize);
    drop(0);
  });
  fake::limit_committed(fake::committed_bytes());
}

const Program kRefusedPurge = {free_all_with_a_locked_page,
                               {[] {
                                  take(0, kLarge);
                                  drop(0);
                                  take(1, kLarge);
                                },
                                purge},
                               check_all};

const Program kPurges = {free_all_there_is,
                         {[] {
                            take(0, kLarge / 2);
                            drop(0);
                          },
                          purge, collect_everything},
                         check_all};

// ---- growing ------------------------------------------------------------------------------------

// Of what is committed next to nothing is free.
void use_all_there_is() {
  registry::loaded();
  fake::limit_committed(kMiB);
  play(0, [] {
    for (size_t number = 8; number < kSlots; ++number) {
      void* block = allocate(kMedium);
      if (block == nullptr) return;
      fill(block, kMedium, seed_of(slots[number]));
      slots[number] = {block, kMedium};
    }
    fail("too much is committed for the slots");
  });
  fake::limit_committed(SIZE_MAX);
}

// Both need what one of them makes usable. What is longer than any store takes is had without the heap's lock, for
// which a fork would wait.
void take_and_drop(size_t number, size_t size) {
  take(number, size);
  drop(number);
}

const Program kGrowth = {
    use_all_there_is, {[] { take_and_drop(1, 5 * kLarge); }, [] { take_and_drop(2, kLarge); }, fork_once}, check_all};

// The next step is the last there is, and has room for both.
Span* last_spans[2];

void use_all_but_the_last_step() {
  use_all_there_is();
  constexpr size_t kDescriptors = platform::kPageSize;
  fake::limit_committed(fake::committed_bytes() + kLarge + kDescriptors);
}

template <size_t number> void take_half_of_the_last() {
  last_spans[number] = g_arena.allocate({kLarge / kUnitSize / 2});
}

void check_both_have_theirs() {
  for (Span* span : last_spans) {
    MODEL_NEED(span != nullptr);
    g_arena.free(span);
  }
  check_all();
}

const Program kLastGrowth = {
    use_all_but_the_last_step, {take_half_of_the_last<0>, take_half_of_the_last<1>}, check_both_have_theirs};

void expect_good(const Program& program, unsigned preemptions) {
  Explored explored = explore(program, preemptions);
  EXPECT_EQ(explored.failure, "") << "in schedule " << explored.schedules;
  std::printf("%zu schedules\n", explored.schedules);
}

// ---- first-class heaps --------------------------------------------------------------------------

Heap* short_lived = nullptr;

void make_heap() {
  registry::loaded();
  play(0, [] {
    short_lived = shared::create();
    // Until its bin has more.
    do {
      MODEL_NEED(allocate_in(short_lived, kBlockAlign, 64, false) != nullptr);
    } while (short_lived->bins[size_class::computed(64)] == nullptr);
  });
}

// What was the heap's is taken at once.
void destroy_heap() {
  destroy_heap(short_lived);
  take_some(0, 8, kSmall);
}

const Program kDestroy = {make_heap, {destroy_heap, collect_everything}, check_all};

// ---- blocks on guarded pages --------------------------------------------------------------------

Heap* ending = nullptr;
void* in_its_place = nullptr;

void free_guarded(void* block) { guards::free(g_realm.span_of(block), block); }

// The next is in the place that was the heap's.
void use_all_places() {
  registry::loaded();
  play(0, [] {
    ending = shared::create();
    free_guarded(guards::allocate(kBlockAlign, 40, true, ending));
    for (size_t place = 1; place < guards::kPlaces; ++place)
      free_guarded(guards::allocate(kBlockAlign, 40, true, nullptr));
  });
}

void end_its_blocks() { guards::free_all(ending); }
void take_its_place() { in_its_place = guards::allocate(kBlockAlign, 40, true, nullptr); }
void need_the_place_is_taken() { MODEL_NEED(is_live(in_its_place)); }

TEST(Model, AHeapEndsWhileAPlaceOfItsIsTaken) {
  expect_good({use_all_places, {end_its_blocks, take_its_place}, need_the_place_is_taken}, 2);
}

// ---- statistics ---------------------------------------------------------------------------------

// More spans than a walk looks at under one hold of the arena's lock.
constexpr size_t kSpans = 600;
void* first_span = nullptr;
size_t large_blocks_seen = 0;

void make_many_spans() {
  registry::loaded();
  play(0, [] {
    first_span = allocate(kMaxSmall + 1);
    for (size_t made = 1; made < kSpans; ++made) MODEL_NEED(allocate(kMaxSmall + 1) != nullptr);
  });
}

void count_spans() { large_blocks_seen = figures().large_blocks; }

// There are never more than at first.
void move_one_to_the_end() {
  deallocate(first_span);
  MODEL_NEED(address_of(allocate(kLarge)) > address_of(first_span));
}

void need_no_change_was_seen() { MODEL_NEED(large_blocks_seen <= kSpans); }

const Program kStatistics = {make_many_spans, {count_spans, move_one_to_the_end}, need_no_change_was_seen};

// One that was moved while they are counted is counted twice: its mover had the arena's lock meanwhile.
TEST(Model, NobodyWaitsForAWholeWalk) {
  EXPECT_EQ(explore(kStatistics, 0).failure, "");
  EXPECT_NE(explore(kStatistics, 1).failure.find("large_blocks_seen"), std::string::npos);
}

// ---- regions ------------------------------------------------------------------------------------

// Of the caller's memory: what lies before all regions, where one goes, between two, where the next comes in the same
// place, and where one stays.
enum Part : size_t { kBefore, kGoes, kBetween, kComes, kStays, kParts };
alignas(16) unsigned char parts[kParts][4096];
Region* stays = nullptr;

Region* lay(Part part) { return regions::make_in(parts[part], sizeof(parts[part])).region; }
Region* found_in(Part part) { return regions::find(&parts[part][2000]); }

void lay_two() {
  registry::loaded();
  MODEL_NEED(lay(kGoes) != nullptr);
  stays = lay(kStays);
}

void let_one_go_and_another_come() {
  regions::destroy(found_in(kGoes));
  MODEL_NEED(lay(kComes) == found_in(kComes));
}

template <Part part> void need_none_is_found() { MODEL_NEED(found_in(part) == nullptr); }
void need_it_is_found() { MODEL_NEED(found_in(kStays) == stays); }

// Half of what is said of one and half of the other would be a range that is neither's.
TEST(Model, WhatLiesBesideRegionsIsNotFoundWhileTheyComeAndGo) {
  for (const auto& ask : {need_none_is_found<kBefore>, need_none_is_found<kBetween>, need_it_is_found})
    expect_good({lay_two, {let_one_go_and_another_come, ask}, [] {}}, 2);
}

TEST(Model, AHeapIsDestroyedWhileAnotherCollects) { expect_good(kDestroy, 2); }

TEST(Model, RemoteFreesAreCollectedByOwnerAndHelper) { expect_good(kRemoteFree, 2); }

TEST(Model, OneLookAdopts) {
  expect_good({leave_twelve_behind, {adopt, [] {}}, check_all}, 0);
}

TEST(Model, SlabsOfADeadThreadAreAdoptedWhileBlocksComeBack) { expect_good(kAdoption, 2); }

TEST(Model, ForkBesideAllocationAndFrees) { expect_good(kFork, 1); }

TEST(Model, ForkBesideAdoption) { expect_good(kForkAndAdoption, 2); }

TEST(Model, SpansComeBackFromAfar) { expect_good(kRemoteSpans, 2); }

TEST(Model, WhatIsBeingPurgedCanBeHad) { expect_good(kPurge, 3); }

TEST(Model, WhatIsRefusedWhileBeingPurgedCanBeHad) { expect_good(kRefusedPurge, 2); }

TEST(Model, ForkBesideTwoThatNeedMoreMemory) { expect_good(kGrowth, 1); }

TEST(Model, TheLastMemoryIsHadByBoth) { expect_good(kLastGrowth, 2); }

TEST(Model, TwoPurgeWhileOneAllocates) { expect_good(kPurges, 2); }

// ---- controls: what is wrong is found -----------------------------------------------------------

// A push onto the inbox that is no compare-and-swap: what another pushes meanwhile is forgotten.
void send_unguarded(size_t number) {
  void* block = slots[number].block;
  slots[number] = {};
  Span* slab = slab_of(block);
  std::atomic<Block*>& inbox = owner_of(slab)->inbox;
  struct Message {
    Block* next;
    uint64_t packed;  // one block, which is the first
  };
  uint64_t position = (address_of(block) - g_realm.address(slab)) / kBlockAlign;
  Block* before = inbox.load();
  schedule_point();
  Message message = {before, position | uint64_t{1} << 16};
  std::memcpy(block, &message, sizeof(message));
  inbox.store(static_cast<Block*>(block));
}

TEST(ModelControl, APushInTwoStepsLosesABlock) {
  const Program program = {own_twelve, {[] { send_unguarded(2); }, [] { send_unguarded(3); }}, check_all};
  EXPECT_EQ(explore(program, 0).failure, "");
  EXPECT_NE(explore(program, 1).failure.find("lost"), std::string::npos);
}

Lock first(LockRank::heap), second(LockRank::heap);

// Debug builds let nobody wait in such orders, only try.
void try_for_ever(Lock& lock) {
  while (!lock.try_acquire())
    while (!lock.held_by(0)) platform::back_off(0);
}

void take_both(Lock& one, Lock& other) {
  try_for_ever(one);
  try_for_ever(other);
  other.release();
  one.release();
}

TEST(ModelControl, LocksInTwoOrdersAreADeadlock) {
  const Program program = {[] {}, {[] { take_both(first, second); }, [] { take_both(second, first); }}, [] {}};
  EXPECT_EQ(explore(program, 0).failure, "");
  EXPECT_NE(explore(program, 1).failure.find("deadlock"), std::string::npos);
}

size_t figure = 0;

void add_one_unguarded() {
  size_t before = figure;
  schedule_point();
  figure = before + 1;
}

TEST(ModelControl, AnUnguardedSumIsWrongAfterOnePreemption) {
  const Program program = {[] {}, {add_one_unguarded, add_one_unguarded}, [] { MODEL_NEED(figure == 2); }};
  EXPECT_EQ(explore(program, 0).failure, "");
  EXPECT_NE(explore(program, 1).failure, "");
}

}  // namespace

}  // namespace rh::model
