// slabs: blocks taken, freed by their owner and by others, and pages returned, in any class, against a set of what is
// handed out.
#include "slabs/slab.h"

#include <cstring>
#include <set>

#include "support/input.h"

namespace {

using namespace rh;

Heap* const kOwner = reinterpret_cast<Heap*>(uintptr_t{4096});

class Player {
 public:
  Player(Input input, Span* slab) : input_(input), slab_(slab) {}

  void play() {
    while (input_.more()) {
      act();
      check();
    }
  }

 private:
  void act() {
    switch (input_.below(11)) {
    case 0: return take();
    case 1: return give_back();
    case 2: return arm(input_.below(100));
    case 3: return recount();
    case 4: return slab::share(slab_);
    case 5: slab::punch(slab_); return;
    default: return free_one();
    }
  }

  size_t size() const { return slab::properties(slab_).size; }

  void take() {
    slab::Taken taken = slab::take(slab_);
    for (Block *block = taken.blocks, *next; block != nullptr; block = next) {
      next = block->next;
      uintptr_t offset = address_of(block) - g_realm.address(slab_);
      FUZZ_EXPECT(offset % size() == 0 && offset / size() < slab::properties(slab_).capacity);
      FUZZ_EXPECT(live_.insert(block).second);
      std::memset(static_cast<void*>(block), 0xcc, size());
    }
    FUZZ_EXPECT(taken.blocks != nullptr || live_.size() == slab::properties(slab_).capacity);
  }

  Block* some() {
    auto at = live_.lower_bound(reinterpret_cast<Block*>(g_realm.address(slab_) + input_.below(64) * size()));
    Block* block = at == live_.end() ? *live_.begin() : *at;
    live_.erase(block);
    std::memset(static_cast<void*>(block), 0xee, size());
    return block;
  }

  void give_back() {
    Block *first = nullptr, *last = nullptr;
    unsigned count = 0;
    for (size_t most = 1 + input_.below(30); count < most && !live_.empty(); ++count) {
      Block* block = some();
      block->next = first;
      first = block;
      if (last == nullptr) last = block;
    }
    if (count != 0) slab::give_back(slab_, first, last, count);
  }

  void arm(size_t frees) {
    slab::arm(slab_, static_cast<unsigned>(frees));
    mark_ = frees;
  }

  void recount() {
    slab::recount(slab_);
    mark_ = slab_->armed.load();
  }

  void free_one() {
    if (live_.empty()) return;
    bool counted = slab_->armed.load() != slab::kUncounted;
    Block *block = some(), *bin = nullptr;
    bool reached = slab::free_local(slab_, block, &bin);
    FUZZ_EXPECT(counted ? !reached || mark_ != 0 : bin == block);
    if (bin != nullptr) slab::give_back_bin(slab_, bin);
  }

  void check() {
    unsigned capacity = slab::properties(slab_).capacity;
    FUZZ_EXPECT(slab::outstanding(slab_) == live_.size());
    FUZZ_EXPECT(slab::free_blocks(slab_) == capacity - live_.size());
    FUZZ_EXPECT(slab::is_balanced(slab_));
  }

  Input input_;
  Span* slab_;
  std::set<Block*> live_;
  size_t mark_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  size_t index = input.below(size_class::kCount);
  Span* slab = g_arena.allocate(Units{size_class::kProperties[index].units});
  FUZZ_EXPECT(slab != nullptr);
  slab::start(slab, static_cast<SizeClass>(index), kOwner, 7);
  Player(input, slab).play();
  slab::finish(slab);
  g_arena.free(slab);
  return 0;
}
