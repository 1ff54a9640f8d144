// Partitions: what lay in one's memory never lies in another's, over the fake platform.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "entry/rules.h"
#include "entry/tokens.h"
#include "heap/fork.h"
#include "heap/idle.h"
#include "heap/limit.h"
#include "heap/registry.h"
#include "heap/relief.h"
#include "heap/sampled.h"
#include "heap/shared.h"
#include "heap/tags.h"
#include "platform/fake/fake.h"
#include "support/heaps.h"

namespace rh {
namespace {

using hardened::Maker;

constexpr size_t kTypedSizes[] = {1, 16, 24, 100, 1000, 5000, 32000, 40000, 200000, 1200000};

// Of each unit, whose partition's block lay there first: it knows nothing of what the arena says.
class Ledger {
 public:
  void enter(Partition partition, const void* block, size_t size) {
    for (uintptr_t unit = address_of(block) / kUnitSize; unit <= (address_of(block) + size - 1) / kUnitSize; ++unit) {
      auto [at, is_new] = units_.try_emplace(unit, partition);
      ASSERT_EQ(at->second, partition) << "unit " << unit << ", new " << is_new;
    }
  }

  std::set<Partition> seen() const {
    std::set<Partition> partitions;
    for (const auto& [unit, partition] : units_) partitions.insert(partition);
    return partitions;
  }

 private:
  std::map<uintptr_t, Partition> units_;
};

Ledger g_ledger;

void* make_of(Partition partition, size_t size, size_t alignment = kBlockAlign, bool zeroed = false) {
  void* block = rules::allocate_typed(partition, alignment, size, Maker::c, zeroed);
  if (block != nullptr && size != 0) g_ledger.enter(partition, block, size);
  return block;
}

void give_up(void* block) { ASSERT_EQ(hardened::free(block, Maker::c), Freed::done); }

// Whatever is free goes where it came from.
void settle() {
  idle::let_go_by([](Heap* heap) { hardened::flush(heap); });
  idle::trim();
}

struct Made {
  void* block;
  Partition partition;
  size_t size;
};

// Allocates and frees at random, of all partitions, some blocks by others than made them.
class Mixer {
 public:
  explicit Mixer(unsigned seed) : random_(seed) {}

  void step() {
    const size_t size = kTypedSizes[below(std::size(kTypedSizes))];
    const Partition partition = static_cast<Partition>(below(kPartitions));
    switch (blocks_.size() < 40 ? 0 : below(8)) {
    case 0: add(partition, size, make_of(partition, size)); break;
    case 1: add(partition, size, make_of(partition, size, kBlockAlign, true)); break;
    case 2: add(partition, size, make_of(partition, size, size_t{16} << below(12))); break;
    case 3: resize(size); break;
    case 4: retype(partition, size); break;
    default: drop(); break;
    }
  }

  void drop_all() {
    while (!blocks_.empty()) drop();
  }

  size_t below(size_t end) { return random_() % end; }

 private:
  void add(Partition partition, size_t size, void* block) {
    if (block == nullptr) return;
    fill(block, size, size);
    blocks_.push_back({block, partition, size});
  }

  Made& any() { return blocks_[below(blocks_.size())]; }

  void moved(Made& made, Partition partition, size_t size, void* block) {
    if (block == nullptr) return;
    ASSERT_EQ(hardened::size_of(block, "test"), size);
    g_ledger.enter(partition, block, size);
    ASSERT_EQ(hardened::partition_of(block), partition);
    fill(block, size, size);
    made = {block, partition, size};
  }

  // As one that knows no type.
  void resize(size_t size) {
    Made& made = any();
    ASSERT_TRUE(intact(made.block, made.size, made.size));
    moved(made, made.partition, size, rules::reallocate(made.block, size));
  }

  void retype(Partition partition, size_t size) {
    Made& made = any();
    ASSERT_TRUE(intact(made.block, made.size, made.size));
    moved(made, partition, size, rules::reallocate_typed(partition, made.block, size));
  }

  void drop() {
    std::swap(any(), blocks_.back());
    const Made made = blocks_.back();
    blocks_.pop_back();
    ASSERT_TRUE(intact(made.block, made.size, made.size));
    give_up(made.block);
  }

  std::mt19937 random_;
  std::vector<Made> blocks_;
};

TEST(Tokens, EachOfAFewHasAPartitionOfItsOwn) {
  std::set<Partition> partitions;
  for (size_t token = 0; token < kPartitions - 1; ++token) partitions.insert(tokens::partition_of(token));
  EXPECT_EQ(partitions.size(), kPartitions - 1);
  EXPECT_EQ(partitions.count(kUntyped), 0u);
}

// As Clang makes them without a maximum: hashes, those of types with pointers beyond the half of all numbers.
TEST(Tokens, OfManyThoseWithPointersAreApartFromTheOthers) {
  std::mt19937_64 random(1);
  std::map<Partition, size_t> with, without;
  constexpr size_t kTokens = 80000, kHalf = SIZE_MAX / 2;
  for (size_t count = 0; count < kTokens; ++count) {
    const size_t hash = 100 + static_cast<size_t>(random()) % (kHalf - 100);
    ++without[tokens::partition_of(hash)];
    ++with[tokens::partition_of(hash + kHalf)];
  }
  EXPECT_EQ(with.size(), 8u);
  EXPECT_EQ(without.size(), 7u);
  for (const auto& [partition, count] : with) {
    EXPECT_EQ(without.count(partition), 0u) << partition;
    EXPECT_NEAR(static_cast<double>(count), kTokens / 8.0, kTokens / 80.0) << partition;
  }
  for (const auto& [partition, count] : without) {
    EXPECT_NE(partition, tokens::partition_of(0)) << "with what has no type";
    EXPECT_NE(partition, kUntyped);
    EXPECT_NEAR(static_cast<double>(count), kTokens / 7.0, kTokens / 70.0) << partition;
  }
}

TEST(Types, MemoryIsNeverAnothers) {
  Mixer mixer(1);
  for (int round = 0; round < 6; ++round) {
    for (int count = 0; count < 1000; ++count) {
      mixer.step();
      if (mixer.below(200) == 0) settle();
    }
    mixer.drop_all();
    settle();
    fake::advance(10000);
    g_arena.purge(0);
    registry::check_books();
  }
  EXPECT_EQ(g_ledger.seen().size(), kPartitions);
}

// What was one partition's and is free is not taken for another, whatever the size; and is taken again for the first.
TEST(Types, WhatIsFreeIsTakenAgainByItsOwnAlone) {
  for (size_t size : kTypedSizes) {
    std::vector<void*> blocks;
    for (int count = 0; count < 200; ++count) blocks.push_back(make_of(3, size));
    for (void* block : blocks) give_up(block);
    settle();
    const size_t committed = g_realm.committed();
    for (void*& block : blocks) block = make_of(3, size);
    EXPECT_EQ(g_realm.committed(), committed) << size;
    for (void* block : blocks) give_up(block);
    settle();
    for (Partition partition : {kUntyped, 4u})
      for (int count = 0; count < 20; ++count) give_up(make_of(partition, size));
  }
}

TEST(Types, BlocksOfAnyAlignmentAndOfNothing) {
  for (size_t alignment = 16; alignment <= 4 * kMiB; alignment *= 2)
    for (size_t size : {size_t{1}, size_t{100}, size_t{40000}}) {
      void* block = make_of(5, size, alignment);
      ASSERT_EQ(address_of(block) % alignment, 0u);
      EXPECT_EQ(hardened::partition_of(block), 5u);
      give_up(block);
    }
  void* nothing = make_of(5, 0);
  ASSERT_NE(nothing, nullptr);
  EXPECT_TRUE(hardened::is_empty_block(nothing));
  void* something = rules::reallocate_typed(6, nothing, 100);
  EXPECT_EQ(hardened::partition_of(something), 6u);
  give_up(something);
}

TEST(Types, ReallocMovesToTheTypeThatIsNamedAndElseStays) {
  void* block = make_of(2, 100);
  fill(block, 100, 7);
  void* grown = rules::reallocate(block, 3000);
  EXPECT_EQ(hardened::partition_of(grown), 2u);
  EXPECT_TRUE(intact(grown, 100, 7));
  EXPECT_EQ(rules::reallocate_typed(2, grown, 2900), grown);
  void* other = rules::reallocate_typed(9, grown, 2900);
  EXPECT_EQ(hardened::partition_of(other), 9u);
  EXPECT_TRUE(intact(other, 100, 7));
  void* plain = rules::reallocate_typed(kUntyped, other, 2900);
  EXPECT_EQ(hardened::partition_of(plain), kUntyped);
  void* large = rules::reallocate_typed(9, plain, 6 * kMiB);
  for (size_t size = 7 * kMiB; size < 20 * kMiB; size += kMiB) {
    large = rules::reallocate(large, size);
    ASSERT_EQ(hardened::partition_of(large), 9u);
    g_ledger.enter(9, large, size);
  }
  EXPECT_TRUE(intact(large, 100, 7));
  // Behind one of another partition's there may be free memory, and of this one's: the block takes its own.
  void* first = make_of(9, 100000);
  give_up(make_of(10, 3 * kMiB));
  settle();
  first = rules::reallocate(first, 2 * kMiB);
  g_ledger.enter(9, first, 2 * kMiB);
  give_up(large);
  give_up(first);
}

// What is no block has no heap that could be asked.
TEST(Types, ReallocOfWhatIsNoBlockIsReported) {
  for (size_t size : {size_t{24}, size_t{200000}, 40 * kMiB}) {  // the last is not kept from use when it is freed
    unsigned char* block = static_cast<unsigned char*>(make_of(4, size));
    EXPECT_DEATH(rules::reallocate_typed(9, block + kBlockAlign, 100), "realloc of invalid pointer") << size;
    give_up(block);
    EXPECT_DEATH(rules::reallocate_typed(9, block, 100), "realloc of invalid pointer") << size;
  }
}

TEST(Types, OtherThreadsFreeAndTakeOverWhatIsLeft) {
  Mixer mixer(2);
  size_t heaps = 0;
  for (int round = 0; round < 30; ++round) {
    Actor one, two;
    for (int count = 0; count < 100; ++count) {
      Actor& who = mixer.below(2) == 0 ? one : two;
      who([&] { mixer.step(); });
    }
    if (round % 5 == 0) two([&] { idle::trim(); });
    one.end();
    two.end();
    size_t now = 0;
    for (Partition partition = 0; partition < kPartitions; ++partition)
      for (const Heap* heap = tags::heaps_of(tags::kUntagged, partition); heap != nullptr; heap = heap->next_of_tag)
        ++now;
    if (round == 15) heaps = now;
  }
  size_t now = 0;
  for (Partition partition = 1; partition < kPartitions; ++partition)
    for (const Heap* heap = tags::heaps_of(tags::kUntagged, partition); heap != nullptr; heap = heap->next_of_tag) {
      EXPECT_EQ(heap->partition, partition);
      ++now;
    }
  EXPECT_EQ(now, heaps) << "threads that ended leave theirs to others";
  mixer.drop_all();
  settle();
  registry::check_books();
}

TEST(Types, WithoutMemoryThereIsNoneOfAnotherPartition) {
  make_of(1, 100);
  make_of(2, 100);
  std::vector<void*> blocks;
  for (int count = 0; count < 200; ++count) blocks.push_back(make_of(1, 100000));
  for (void* block : blocks) give_up(block);
  settle();
  fake::limit_committed(fake::committed_bytes());
  blocks.clear();
  while (void* block = make_of(2, 100000)) blocks.push_back(block);
  EXPECT_LT(blocks.size(), 10u);
  EXPECT_EQ(make_of(3, 100), nullptr) << "there is no memory for its heap";
  for (int count = 0; count < 150; ++count) ASSERT_NE(make_of(1, 100000), nullptr);
  EXPECT_EQ(rules::reallocate_typed(2, make_of(1, 1000), 100000), nullptr);
  fake::limit_committed(SIZE_MAX);
  EXPECT_NE(make_of(3, 100), nullptr);
  registry::check_books();
}

// Where little may be held, what one has given up goes back to the OS for another's sake. Its descriptors and notes
// stay.
TEST(Types, ALimitIsForAllOfThemTogether) {
  fake::set_purge_uncommits(platform::kChargesUntouched);
  constexpr size_t kHard = 64 * kMiB;
  limit::Rule rule;
  rule.hard = {limit::Bound::Kind::bytes, kHard};
  limit::set(rule);
  relief::answer();
  for (Partition partition : {1u, 2u, 0u, 2u, 5u}) {
    std::vector<void*> blocks;
    while (void* block = make_of(partition, 100000)) {
      blocks.push_back(block);
      ASSERT_LE(g_arena.standing().held, kHard);
    }
    EXPECT_GT(blocks.size() * 100000, kHard * 5 / 8) << partition;
    for (void* block : blocks) give_up(block);
  }
}

TEST(Types, UnderATagTheyCountForIt) {
  const tags::Tag tag = tags::create("a");
  void* before = make_of(4, 1000);
  ASSERT_TRUE(tags::push(own_heap(), tag));
  std::vector<void*> blocks;
  for (size_t size : kTypedSizes) {
    blocks.push_back(make_of(4, size));
    blocks.push_back(make_of(5, size));
    blocks.push_back(make_of(kUntyped, size));
    EXPECT_EQ(hardened::partition_of(blocks.back()), kUntyped);
  }
  EXPECT_EQ(hardened::partition_of(rules::reallocate(before, 5000)), 4u);
  stats::Figures whole;
  stats::ByTag by_tag;
  stats::gather(&whole, &by_tag);
  EXPECT_EQ(by_tag[tag].held, tags::account_of(tag).held());
  EXPECT_GT(by_tag[tag].in_use, size_t{3 * 1'200'000});
  tags::account_of(tag).set_limit(tags::account_of(tag).held());
  EXPECT_EQ(make_of(6, 100), nullptr);
  EXPECT_EQ(make_of(4, 400000), nullptr);
  tags::pop();
  EXPECT_NE(make_of(6, 100), nullptr);
  for (void* block : blocks) give_up(block);
  settle();
  stats::gather(&whole, &by_tag);
  EXPECT_EQ(by_tag[tag].held, tags::account_of(tag).held());
  registry::check_books();
}

TEST(Types, AFirstClassHeapKeepsItsBlocks) {
  Heap* heap = shared::create();
  void* block = rules::heap_allocate(heap, kBlockAlign, 100, false);
  g_ledger.enter(kUntyped, block, 100);
  block = rules::reallocate_typed(7, block, 50000);
  EXPECT_EQ(shared::heap_of(find_block(block).span), heap);
  EXPECT_EQ(hardened::partition_of(block), kUntyped);
  give_up(block);
  destroy_heap(heap);
  // What was its store is no partition's; nor is that of the heap that is made of it.
  for (int count = 0; count < 100; ++count) make_of(7, 5000);
  heap = shared::create();
  g_ledger.enter(kUntyped, rules::heap_allocate(heap, kBlockAlign, 100, false), 100);
}

TEST(Types, AProfileDoesNotMixThem) {
  sampled::start(4096);
  Mixer mixer(3);
  for (int count = 0; count < 1000; ++count) mixer.step();
  mixer.drop_all();
  sampled::stop();
}

TEST(Types, AForkedChildGoesOn) {
  Actor other;
  std::vector<void*> theirs;
  other([&] {
    for (Partition partition = 0; partition < kPartitions; ++partition) theirs.push_back(make_of(partition, 100));
  });
  Mixer mixer(4);
  for (int count = 0; count < 500; ++count) mixer.step();
  fork::before();
  fork::after_in_child();
  for (void* block : theirs) give_up(block);
  for (int count = 0; count < 700; ++count) mixer.step();
  mixer.drop_all();
  settle();
  registry::check_books();
}

// One that was interrupted where nobody knows how far another thread had come: its heaps are given up, but not what
// they are of.
TEST(Types, AForkedChildThatMissedALockGoesOn) {
  if (platform::kThreadsAreTerminated) GTEST_SKIP() << "there is no fork here";
  Mixer mixer(5);
  for (int count = 0; count < 500; ++count) mixer.step();
  Heap* heap = tags::heap_for(own_heap(), 3);
  ASSERT_TRUE(heap->lock.try_acquire(platform::thread_token() + 100));
  fake::on_back_off([] { fake::advance(100); });
  fork::before();
  fork::after_in_child();
  EXPECT_EQ(tags::heap_for(own_heap(), 3), heap);
  EXPECT_EQ(heap->partition, 3u);
  for (int count = 0; count < 700; ++count) mixer.step();
  mixer.drop_all();
}

}  // namespace
}  // namespace rh
