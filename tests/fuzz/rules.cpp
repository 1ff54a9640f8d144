// heap and entry: every kind of request by several threads in turn, threads that end, heaps of one's own, shortage and
// calls that fail; every block's content is verified.
#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "heap/idle.h"
#include "heap/registry.h"
#include "reheap/reheap.h"
#include "support/heaps.h"
#include "support/input.h"

namespace {

using namespace rh;

struct Entry {
  size_t size;
  unsigned seed;
  rh_heap* heap;
};

class Player {
 public:
  explicit Player(Input input) : input_(input) {}

  void play() {
    for (size_t count = 0; count < 3; ++count) threads_.push_back(std::make_unique<Actor>());
    while (input_.more()) {
      fake::advance(input_.below(8));
      size_t which = input_.below(threads_.size());
      if (input_.below(64) == 0)
        replace(which);
      else
        (*threads_[which])([this] { act_within_limits(); });
      registry::check_books();
    }
    end();
  }

 private:
  static constexpr fake::Call kKinds[] = {fake::Call::reserve, fake::Call::commit, fake::Call::purge, fake::Call::move,
                                          fake::Call::start_helper};

  // More than the limit is held only where that was lowered.
  void act_within_limits() {
    Arena::Standing before = g_arena.standing();
    act();
    Arena::Standing after = g_arena.standing();
    bool same = before.limit == after.limit && before.held <= before.limit.hard;
    FUZZ_EXPECT(!same || after.held <= after.limit.hard);
  }

  void act() {
    errno = 0;
    switch (input_.below(20)) {
    case 0: return zeroed();
    case 1: return aligned();
    case 2:
    case 3: return resize();
    case 4: return make_heap();
    case 5: return end_heap();
    case 6:
    case 7: return in_heap();
    case 8: return fake::fail_nth(kKinds[input_.below(5)], 1 + input_.below(3));
    case 9: return others();
    case 10:
    case 11:
    case 12:
    case 13: return free_some();
    default: return several();
    }
  }

  size_t some_size() { return input_.size_up_to(21); }

  void several() {
    size_t size = some_size();
    for (size_t count = size > 40000 ? 1 : 1 + input_.below(40); count != 0; --count)
      enter(rh_malloc(size), size, nullptr);
  }

  void zeroed() {
    size_t size = some_size(), count = input_.below(3);
    void* block = rh_calloc(count, size);
    if (block != nullptr) FUZZ_EXPECT(all_zero(block, count * size));
    enter(block, count * size, nullptr);
  }

  void aligned() {
    size_t size = some_size() / 4, alignment = size_t{1} << input_.below(19);
    void* block = rh_aligned_alloc(alignment, size);
    FUZZ_EXPECT(address_of(block) % alignment == 0);
    enter(block, size, nullptr);
  }

  void enter(void* block, size_t size, rh_heap* heap) {
    if (block == nullptr) {
      FUZZ_EXPECT(errno == ENOMEM);
      return;
    }
    FUZZ_EXPECT(address_of(block) % kBlockAlign == 0);
    FUZZ_EXPECT(rh_usable_size(block) >= size && rh_owns(block));
    auto next = live_.lower_bound(static_cast<char*>(block));
    FUZZ_EXPECT(next == live_.end() || static_cast<char*>(block) + rh_usable_size(block) <= next->first);
    FUZZ_EXPECT(next == live_.begin() || std::prev(next)->first + std::prev(next)->second.size <= block);
    fill(block, size, ++seed_);
    live_[static_cast<char*>(block)] = {size, seed_, heap};
  }

  // Near an address of the fuzzer's choice.
  char* some() {
    if (live_.empty()) return nullptr;
    auto at = live_.begin();
    for (size_t steps = input_.below(live_.size()) % 500; steps != 0; --steps) ++at;
    return at->first;
  }

  void expect_content(char* block) {
    const Entry& entry = live_[block];
    FUZZ_EXPECT(intact(block, entry.size, entry.seed));
  }

  void release(char* block) {
    expect_content(block);
    live_.erase(block);
    rh_free(block);
    FUZZ_EXPECT(errno == 0 || errno == ENOMEM);
  }

  void free_some() {
    for (size_t count = 1 + input_.below(30); count != 0 && !live_.empty(); --count) release(some());
  }

  void resize() {
    char* block = some();
    if (block == nullptr) return;
    Entry entry = live_[block];
    size_t size = 1 + some_size();
    void* moved = rh_realloc(block, size);
    if (moved == nullptr) {
      FUZZ_EXPECT(errno == ENOMEM);
      return expect_content(block);
    }
    FUZZ_EXPECT(intact(moved, std::min(entry.size, size), entry.seed));
    live_.erase(block);
    enter(moved, size, entry.heap);
  }

  void make_heap() {
    if (heaps_.size() == 4) return;
    if (rh_heap* heap = rh_heap_create(); heap != nullptr) heaps_.insert(heap);
  }

  rh_heap* some_heap() {
    if (heaps_.empty()) return nullptr;
    return *std::next(heaps_.begin(), static_cast<ptrdiff_t>(input_.below(heaps_.size())));
  }

  void in_heap() {
    rh_heap* heap = some_heap();
    if (heap == nullptr) return;
    size_t size = some_size() / 2;
    bool zero = input_.below(2) != 0;
    void* block = zero ? rh_heap_calloc(heap, 1, size) : rh_heap_malloc(heap, size);
    if (zero && block != nullptr) FUZZ_EXPECT(all_zero(block, size));
    enter(block, size, heap);
  }

  void end_heap() {
    if (rh_heap* heap = some_heap(); heap != nullptr) destroy(heap);
  }

  void destroy(rh_heap* heap) {
    for (auto at = live_.begin(); at != live_.end();) {
      if (at->second.heap == heap) {
        expect_content(at->first);
        at = live_.erase(at);
      } else {
        ++at;
      }
    }
    heaps_.erase(heap);
    rh_heap_destroy(heap);
  }

  void others() {
    switch (input_.below(5)) {
    case 0: rh_trim(); break;
    case 1: fake::step_helper(); break;
    case 2: change_limits(); break;
    default: idle::reclaim();
    }
  }

  void change_limits() {
    auto some = [this] { return input_.below(3) == 0 ? 0 : kMiB + input_.below(64) * kMiB / 4; };
    size_t soft = some(), hard = some();
    bool possible = hard == 0 || soft <= hard;
    FUZZ_EXPECT(rh_limit_set(soft, hard) == possible);
    errno = 0;
  }

  // A thread ends, another is born.
  void replace(size_t which) {
    threads_[which]->end();
    threads_[which] = std::make_unique<Actor>();
  }

  void end() {
    for (fake::Call kind : kKinds) fake::fail_nth(kind, 0);
    (*threads_[0])([this] {
      errno = 0;
      FUZZ_EXPECT(rh_limit_set(0, 0));
      while (!heaps_.empty()) destroy(*heaps_.begin());
      while (!live_.empty()) release(live_.begin()->first);
      for (int round = 0; round < 2; ++round) rh_trim();
      void* block = rh_malloc(4 * kMiB);
      FUZZ_EXPECT(block != nullptr);
      rh_free(block);
    });
    for (auto& thread : threads_) {
      (*thread)([] { rh_trim(); });
      thread->end();
    }
  }

  Input input_;
  std::vector<std::unique_ptr<Actor>> threads_;
  std::map<char*, Entry> live_;
  std::set<rh_heap*> heaps_;
  unsigned seed_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fake::limit_committed(48 * kMiB);
  Player(Input(data, size)).play();
  return 0;
}
