// Tags, and the accounts and limits of tags and heaps.
#include "heap/tags.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "entry/rules.h"
#include "heap/fork.h"
#include "heap/idle.h"
#include "heap/registry.h"
#include "heap/sampled.h"
#include "heap/shared.h"
#include "support/heaps.h"

namespace rh {
namespace {

using tags::Tag;

class Scope {
 public:
  explicit Scope(Tag tag) : worked_(tags::push(own_heap(), tag)) {}
  ~Scope() { tags::pop(); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  bool worked() const { return worked_; }

 private:
  bool worked_;
};

struct Looked {
  stats::Figures whole;
  stats::ByTag by_tag;
};

// They add up, whenever one looks.
Looked look() {
  Looked now;
  stats::gather(&now.whole, &now.by_tag);
  size_t sum = 0;
  for (const stats::TagFigures& figures : now.by_tag) sum += figures.in_use;
  EXPECT_EQ(sum, now.whole.in_use);
  return now;
}

size_t in_use(Tag tag) { return look().by_tag[tag].in_use; }

// The account that is kept all the time says what a look at every span says.
void expect_accounts_right() {
  Looked now = look();
  for (Tag tag = 1; tag < tags::count(); ++tag) {
    EXPECT_EQ(tags::account_of(tag).held(), now.by_tag[tag].held) << tags::name_of(tag);
    EXPECT_GE(tags::account_of(tag).peak(), tags::account_of(tag).held());
  }
  registry::check_books();
}

Tag tag_of(const void* block) {
  const Heap* owner = without_notes(find_block(block).span->owner.load());
  return owner != nullptr ? owner->tag : tags::kUntagged;
}

void free_any_way(void* block) { rules::free(block); }

TEST(Tags, NamesAreGivenOnceAndAreBounded) {
  EXPECT_EQ(tags::count(), 1u);
  const Tag first = tags::create("textures");
  EXPECT_EQ(first, 1u);
  EXPECT_EQ(tags::create("textures"), first);
  EXPECT_EQ(tags::create(""), tags::kUntagged);
  EXPECT_EQ(tags::create(nullptr), tags::kUntagged);
  EXPECT_EQ(tags::create(std::string(64, 'x').c_str()), tags::kUntagged);
  EXPECT_NE(tags::create(std::string(63, 'x').c_str()), tags::kUntagged);
  for (size_t number = tags::count(); number <= tags::kMost; ++number)
    EXPECT_EQ(tags::create(std::to_string(number).c_str()), number);
  EXPECT_EQ(tags::create("one more"), tags::kUntagged);
  EXPECT_EQ(tags::create("255"), 255u);
  EXPECT_STREQ(tags::name_of(first), "textures");
  EXPECT_STREQ(tags::name_of(tags::kUntagged), "untagged");
  Scope on(255);
  EXPECT_TRUE(on.worked());
  EXPECT_EQ(tag_of(allocate(100)), 255u);
}

TEST(Tags, BlocksOfAllKindsAreOfTheTagInForce) {
  const Tag tag = tags::create("a");
  void* before = allocate(100);
  std::vector<void*> blocks;
  size_t bytes = 0;
  {
    Scope on(tag);
    for (size_t size = 1; size < 4 * kMiB; size += 1 + size / 4)
      for (int kind = 0; kind < 3; ++kind) {
        void* block = kind == 0 ? allocate(size) : kind == 1 ? allocate_zeroed(size) : allocate_aligned(256, size);
        ASSERT_NE(block, nullptr);
        if (kind == 1) ASSERT_TRUE(all_zero(block, size));
        ASSERT_EQ(tag_of(block), tag) << size << ' ' << kind;
        fill(block, size, size);
        blocks.push_back(block);
        bytes += size;
      }
    blocks.push_back(allocate_aligned(16 * kMiB, 100));
    EXPECT_EQ(tag_of(blocks.back()), tag);
  }
  EXPECT_EQ(tag_of(before), tags::kUntagged);
  EXPECT_EQ(tag_of(allocate(100)), tags::kUntagged);
  EXPECT_GE(in_use(tag), bytes);
  expect_accounts_right();
  for (void* block : blocks) free_any_way(block);
  idle::trim();
  EXPECT_EQ(in_use(tag), 0u);
  expect_accounts_right();
  EXPECT_GE(tags::account_of(tag).peak(), bytes);
}

TEST(Tags, NestAndEndInOrder) {
  const Tag a = tags::create("a"), b = tags::create("b");
  tags::pop();
  EXPECT_EQ(tags::in_force(), tags::kUntagged);
  EXPECT_TRUE(tags::push(own_heap(), a));
  EXPECT_TRUE(tags::push(own_heap(), b));
  EXPECT_TRUE(tags::push(own_heap(), tags::kUntagged));
  EXPECT_EQ(tag_of(allocate(10)), tags::kUntagged);
  tags::pop();
  EXPECT_EQ(tag_of(allocate(10)), b);
  EXPECT_FALSE(tags::push(own_heap(), b + 1)) << "no such tag";
  EXPECT_EQ(tags::in_force(), b);
  tags::pop();
  EXPECT_EQ(tags::in_force(), b);
  tags::pop();
  EXPECT_EQ(tags::in_force(), a);
  for (int more = 0; more < 5; ++more) tags::pop();
  EXPECT_EQ(tags::in_force(), tags::kUntagged);
  EXPECT_TRUE(tags::push(own_heap(), b));
  EXPECT_EQ(tags::in_force(), b);
}

TEST(Tags, TooDeepLeavesTheLastInForce) {
  const Tag a = tags::create("a"), b = tags::create("b");
  for (size_t depth = 0; depth < Tagging::kDeepest; ++depth) EXPECT_TRUE(tags::push(own_heap(), depth % 2 ? a : b));
  for (int deeper = 0; deeper < 100; ++deeper) EXPECT_FALSE(tags::push(own_heap(), b));
  EXPECT_EQ(tags::in_force(), a);
  for (int deeper = 0; deeper < 100; ++deeper) tags::pop();
  for (size_t depth = Tagging::kDeepest; depth-- > 0;) {
    EXPECT_EQ(tags::in_force(), depth % 2 ? a : b);
    tags::pop();
  }
  EXPECT_EQ(tags::in_force(), tags::kUntagged);
}

TEST(Tags, NeitherMallocNorFreeTakesALockUnderATag) {
  const Tag tag = tags::create("a");
  std::vector<void*> others;
  for (int count = 0; count < 5000; ++count) others.push_back(allocate(64));
  Scope on(tag);
  for (int count = 0; count < 20; ++count) allocate(64);
  Heap *own = own_heap_if_any(), *used = heap_in_use_if_any();
  ASSERT_NE(own, used);
  ASSERT_TRUE(own->lock.try_acquire(kHelperToken));  // whoever waits for one of them now waits for ever
  ASSERT_TRUE(used->lock.try_acquire(kHelperToken));
  for (int count = 0; count < 1000; ++count) {
    void* block = allocate_fast(64);
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(deallocate_fast(block));
  }
  EXPECT_FALSE(deallocate_fast(others[0]));
  EXPECT_TRUE(deallocate_otherwise(others[0])) << "the thread's own";
  own->lock.release();
  used->lock.release();
}

// Who frees asks no more than whether the owner is the heap in use: it must not take such a block for one of a slab.
TEST(Tags, LargeBlocksDoNotPassForThoseOfSlabs) {
  const Tag tag = tags::create("a");
  Scope on(tag);
  for (size_t size : {100 * size_t{1024}, 4 * kMiB}) {
    void* block = allocate(size);
    EXPECT_EQ(tag_of(block), tag);
    EXPECT_EQ(own_span(block), nullptr);
    EXPECT_EQ(own_live_slab(block), nullptr);
  }
}

TEST(Tags, OneThatMovesTakesTheTagInForce) {
  const Tag a = tags::create("a"), b = tags::create("b");
  for (size_t size : {size_t{100}, size_t{100000}, 8 * kMiB}) {
    tags::push(own_heap(), a);
    void* block = rules::allocate(size);
    tags::pop();
    fill(block, size, 7);
    Scope on(b);
    void* in_place = rules::reallocate(block, size - size / 8);
    EXPECT_EQ(in_place, block);
    EXPECT_EQ(tag_of(in_place), a);
    allocate(64 * kMiB);  // nothing is free behind it
    void* moved = rules::reallocate(in_place, 3 * size);
    ASSERT_TRUE(intact(moved, size - size / 8, 7));
    if (moved != in_place) EXPECT_EQ(tag_of(moved), b);
    expect_accounts_right();
    rules::free(moved);
  }
  expect_accounts_right();
}

TEST(Tags, LargeBlocksThatGrowAndShrinkInPlaceAreCountedSo) {
  const Tag tag = tags::create("a");
  Scope on(tag);
  void* block = allocate(kMiB);
  for (size_t size : {3 * kMiB, 2 * kMiB, 300 * size_t{1024}, 5 * kMiB, kMiB}) {
    void* resized = resize_in_place(find_block(block), size);
    if (resized == nullptr) continue;
    EXPECT_EQ(tags::account_of(tag).held(), align_up(size, kUnitSize)) << size;
    expect_accounts_right();
  }
  free_any_way(block);
  EXPECT_EQ(tags::account_of(tag).held(), 0u);
}

TEST(Tags, WhatOthersFreeComesBackToTheTag) {
  const Tag tag = tags::create("a");
  Actor other;
  for (int round = 0; round < 4; ++round) {
    std::vector<void*> blocks;
    {
      Scope on(tag);
      for (int count = 0; count < 5000; ++count) blocks.push_back(allocate(100));
      for (int count = 0; count < 20; ++count) blocks.push_back(allocate(100000));
    }
    for (size_t index = 0; index < blocks.size(); ++index)
      if (index % 2)
        free_any_way(blocks[index]);
      else
        other([&] { free_any_way(blocks[index]); });
    expect_accounts_right();
  }
  other([] { idle::trim(); });
  idle::trim();
  EXPECT_EQ(in_use(tag), 0u);
  EXPECT_EQ(tags::account_of(tag).held(), 0u);
  expect_accounts_right();
}

size_t heaps_of(Tag tag) {
  size_t count = 0;
  for (const Heap* heap = tags::heaps_of(tag, kUntyped); heap != nullptr; heap = heap->next_of_tag) ++count;
  return count;
}

TEST(Tags, TheHeapOfAThreadThatEndedIsTakenOver) {
  const Tag tag = tags::create("a");
  std::vector<void*> blocks;
  for (int thread = 0; thread < 50; ++thread) {
    Actor actor;
    actor([&] {
      EXPECT_EQ(tags::in_force(), tags::kUntagged) << "whatever the last owner of this heap had pushed";
      for (int count = 0; count < 3; ++count) tags::push(own_heap(), tag);
      for (int count = 0; count < 100; ++count) {
        blocks.push_back(allocate(100));
        fill(blocks.back(), 100, blocks.size());
        ASSERT_EQ(tag_of(blocks.back()), tag);
      }
      for (int count = 0; count < 50; ++count) {
        ASSERT_TRUE(intact(blocks.back(), 100, blocks.size()));
        free_any_way(blocks.back());
        blocks.pop_back();
      }
    });
    actor.end();
  }
  EXPECT_EQ(heaps_of(tag), 1u);
  for (size_t index = 0; index < blocks.size(); ++index) EXPECT_TRUE(intact(blocks[index], 100, index + 1));
  EXPECT_GE(in_use(tag), blocks.size() * 100);
  free_all(blocks);
  idle::trim();
  expect_accounts_right();
}

TEST(Tags, ThreadsThatLiveHaveHeapsOfTheirOwn) {
  const Tag tag = tags::create("a");
  Actor first, second;
  void* one = first([&] { return tags::push(own_heap(), tag), allocate(100); });
  void* two = second([&] { return tags::push(own_heap(), tag), allocate(100); });
  EXPECT_NE(slab_of(one)->owner.load(), slab_of(two)->owner.load());
  EXPECT_EQ(tag_of(one), tag);
  EXPECT_EQ(tag_of(two), tag);
  EXPECT_EQ(heaps_of(tag), 2u);
}

TEST(Tags, WithoutMemoryForAHeapWhatWasInForceStays) {
  const Tag a = tags::create("a"), b = tags::create("b");
  Scope on(a);
  allocate(100);
  fake::fail_all(fake::Call::reserve, true);
  fake::fail_all(fake::Call::commit, true);
  size_t failed = 0;
  for (Tag tag = b; tag < b + 40; ++tag) {
    if (!tags::exists(tag)) tags::create(std::to_string(tag).c_str());
    if (tags::push(own_heap(), tag)) continue;
    ++failed;
    EXPECT_NE(tags::in_force(), tag);
  }
  EXPECT_GT(failed, 0u);
  fake::fail_all(fake::Call::reserve, false);
  fake::fail_all(fake::Call::commit, false);
  for (int count = 0; count < 40; ++count) tags::pop();
  EXPECT_EQ(tags::in_force(), a);
}

// ---- limits -------------------------------------------------------------------------------------

class TagLimit : public testing::TestWithParam<size_t> {};

TEST_P(TagLimit, IsNeverExceededAndIsTheTagsAlone) {
  constexpr size_t kLimit = 8 * kMiB;
  const Tag a = tags::create("a"), b = tags::create("b");
  tags::account_of(a).set_limit(kLimit);
  const size_t size = GetParam();
  for (size_t round = 1; round <= 3; ++round) {
    std::vector<void*> blocks;
    Scope on(a);
    while (void* block = allocate(size)) {
      blocks.push_back(block);
      ASSERT_LE(tags::account_of(a).held(), kLimit);
      ASSERT_LE(blocks.size() * size, kLimit);
    }
    EXPECT_GT(tags::account_of(a).held() + size + 4 * kUnitSize, kLimit) << "a slab has some units";
    EXPECT_EQ(tags::account_of(a).refused(), round);
    {
      Scope other(b);
      void* block = allocate(2 * kLimit);
      EXPECT_NE(block, nullptr);
      free_any_way(block);
    }
    for (void* block : blocks) free_any_way(block);
    expect_accounts_right();
  }
  EXPECT_LE(tags::account_of(a).peak(), kLimit);
  tags::account_of(a).set_limit(0);
  Scope on(a);
  EXPECT_NE(allocate(2 * kLimit), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Sizes, TagLimit, testing::Values(48, 5000, 40000, 300000, 3 * kMiB));

// What another thread of the tag has free comes back before a request is refused.
TEST(TagLimits, WhatOtherThreadsKeepIsNoReasonToRefuse) {
  constexpr size_t kLimit = 8 * kMiB;
  const Tag tag = tags::create("a");
  tags::account_of(tag).set_limit(kLimit);
  Actor other;
  other([&] {
    Scope on(tag);
    std::vector<void*> blocks;
    for (size_t bytes = 0; bytes + kMiB < kLimit; bytes += 5000) blocks.push_back(allocate(5000));
    free_all(blocks);
  });
  Scope on(tag);
  for (size_t bytes = 0; bytes + kMiB < kLimit; bytes += 5000) ASSERT_NE(allocate(5000), nullptr) << bytes;
}

TEST(TagLimits, ABlockThatMayNotGrowStays) {
  const Tag tag = tags::create("a");
  Scope on(tag);
  void* block = rules::allocate(4 * kMiB);
  fill(block, 4 * kMiB, 3);
  tags::account_of(tag).set_limit(5 * kMiB);
  EXPECT_EQ(rules::reallocate(block, 6 * kMiB), nullptr);
  EXPECT_TRUE(intact(block, 4 * kMiB, 3));
  EXPECT_EQ(tags::account_of(tag).held(), 4 * kMiB);
  rules::free(block);
  expect_accounts_right();
}

// What is held may be more than a limit that is set later: then there is no room at all.
TEST(TagLimits, OneSetBelowWhatIsHeldRefuses) {
  Heap* heap = shared::create();
  void* large = allocate_in(heap, kBlockAlign, 2 * kMiB, false);
  ASSERT_NE(large, nullptr);
  heap->account.set_limit(kMiB);
  for (size_t size : {size_t{100}, size_t{100000}, 2 * kMiB})
    EXPECT_EQ(allocate_in(heap, kBlockAlign, size, false), nullptr) << size;
  deallocate(large);
  EXPECT_NE(allocate_in(heap, kBlockAlign, 100000, false), nullptr);
  destroy_heap(heap);
}

TEST(TagLimits, AHeapHasOneOfItsOwn) {
  for (Heap* heap : {shared::create(), create_bound_heap()}) {
    heap->account.set_limit(4 * kMiB);
    std::vector<void*> blocks;
    for (size_t size : {size_t{100}, size_t{100000}, kMiB}) {
      while (void* block = allocate_in(heap, kBlockAlign, size, false)) {
        blocks.push_back(block);
        ASSERT_LE(heap->account.held(), 4 * kMiB);
      }
      EXPECT_GT(blocks.size(), 3u);
      EXPECT_EQ(shared::figures(heap).in_use, figures().in_use);
      EXPECT_GE(shared::figures(heap).blocks, blocks.size());
      free_all(blocks);
      blocks.clear();
    }
    EXPECT_EQ(heap->account.refused(), 3u);
    reset_heap(heap);
    EXPECT_EQ(heap->account.held(), 0u);
    destroy_heap(heap);
    Heap* next = shared::create();
    EXPECT_EQ(next->account.limit() + next->account.peak() + next->account.refused(), 0u) << "a new heap's account";
    destroy_heap(next);
  }
}

// ---- with others --------------------------------------------------------------------------------

TEST(Tags, BlocksThatAProfileSamplesAreTheTagsToo) {
  sampled::start(1);
  const Tag a = tags::create("a"), b = tags::create("b");
  std::vector<void*> blocks;
  for (Tag tag : {a, b, tags::kUntagged}) {
    Scope on(tag);
    for (size_t size : {size_t{100}, size_t{20000}, kMiB}) {
      blocks.push_back(allocate(size));
      EXPECT_EQ(tag_of(blocks.back()), tag);
    }
  }
  expect_accounts_right();
  for (void*& block : blocks) block = rules::reallocate(block, 5 * kMiB);
  for (void*& block : blocks) block = rules::reallocate(block, 9 * kMiB);
  expect_accounts_right();
  sampled::stop();
  for (void* block : blocks) free_any_way(block);
  idle::trim();
  expect_accounts_right();
  EXPECT_EQ(in_use(a), 0u);
}

TEST(Tags, AForkedChildGoesOnUnderTheTag) {
  const Tag tag = tags::create("a");
  Actor other;
  void* theirs = other([&] { return tags::push(own_heap(), tag), allocate(100); });
  Scope on(tag);
  std::vector<void*> blocks;
  for (int count = 0; count < 100; ++count) blocks.push_back(allocate(100));
  fork::before();
  fork::after_in_child();
  EXPECT_EQ(tags::in_force(), tag);
  EXPECT_EQ(tag_of(allocate(100)), tag);
  for (void* block : blocks) free_any_way(block);
  free_any_way(theirs);
  expect_accounts_right();
}

// Real threads, which hand their blocks round, while another looks and a limit is met.
TEST(Tags, ThreadsAtOnce) {
  constexpr size_t kLimit = 2 * kMiB;
  for (const char* name : {"a", "b", "c"}) tags::create(name);
  tags::account_of(1).set_limit(kLimit);
  std::atomic<void*> places[64] = {};
  std::atomic<bool> ended{false};
  std::thread looker([&] {
    while (!ended) {
      look();
      stats::own_heaps();
      EXPECT_LE(tags::account_of(1).held(), kLimit);
      std::this_thread::yield();
    }
  });
  for (unsigned round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 3; ++number)
      threads.emplace_back([&, seed = 3 * round + number] {
        std::mt19937 random(seed);
        for (int step = 0; step < 1000; ++step) {
          if (random() % 4 == 0) tags::push(own_heap(), random() % tags::count());
          if (random() % 4 == 0) tags::pop();
          rules::free(places[random() % 64].exchange(allocate(size_t{1} << random() % 18)));
        }
        idle::trim();
      });
    for (std::thread& thread : threads) thread.join();
  }
  ended = true;
  looker.join();
  for (std::atomic<void*>& place : places) rules::free(place.load());
  idle::trim();
  for (Tag tag = 1; tag < tags::count(); ++tag) EXPECT_EQ(in_use(tag), 0u);
  EXPECT_LE(tags::account_of(1).peak(), kLimit);
  expect_accounts_right();
}

// Several threads take and free at random, each other's blocks too.
TEST(Tags, AccountsAreRightWhateverHappens) {
  std::mt19937 random(7);
  for (const char* name : {"a", "b", "c", "d"}) tags::create(name);
  struct Live {
    void* block;
    size_t size;
    Tag tag;
  };
  std::vector<Live> live;
  std::vector<Actor*> actors;
  for (int count = 0; count < 4; ++count) actors.push_back(new Actor);
  auto take = [&] {
    const size_t size = size_t{1} << random() % 21;
    live.push_back({rules::allocate(size), size, tags::in_force()});
    ASSERT_EQ(tag_of(live.back().block), live.back().tag);
    fill(live.back().block, size < 4096 ? size : 4096, size);
  };
  auto give = [&] {
    if (live.empty()) return;
    std::swap(live[random() % live.size()], live.back());
    const Live last = live.back();
    live.pop_back();
    ASSERT_EQ(tag_of(last.block), last.tag);
    ASSERT_TRUE(intact(last.block, last.size < 4096 ? last.size : 4096, last.size));
    rules::free(last.block);
  };
  for (int step = 0; step < 20000; ++step) {
    Actor*& actor = actors[random() % actors.size()];
    (*actor)([&] {
      switch (random() % 8) {
      case 0: tags::push(own_heap(), random() % tags::count()); break;
      case 1: tags::pop(); break;
      case 2:
      case 3:
      case 4: take(); break;
      default: give(); break;
      }
    });
    if (step % 500 == 0) {
      (*actor)([] { idle::trim(); });  // what it has kept for others goes to them
      actor->end();
      delete actor;
      actor = new Actor;
    }
    if (step % 1000 == 0) expect_accounts_right();
  }
  Looked now = look();
  std::vector<size_t> held(tags::count());
  for (const Live& each : live) held[each.tag] += each.size;
  for (Tag tag = 0; tag < tags::count(); ++tag) EXPECT_GE(now.by_tag[tag].in_use, held[tag]);
  while (!live.empty()) give();
  for (Actor* actor : actors) {
    (*actor)([] { idle::trim(); });
    actor->end();
    delete actor;
  }
  idle::trim();
  for (Tag tag = 1; tag < tags::count(); ++tag) EXPECT_EQ(in_use(tag), 0u);
  expect_accounts_right();
}

}  // namespace
}  // namespace rh
