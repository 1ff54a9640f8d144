// Random use of a region against a model: what every block holds, that none overlap, how they are aligned, and that all
// of it is one free piece again in the end.
#pragma once

#include <map>
#include <set>

#include "heap/region.h"
#include "platform/fake/fake.h"
#include "support/input.h"
#include "support/pattern.h"

namespace rh {

// The longest block that there is room for now.
inline size_t longest_in(Region& region) {
  size_t low = 0, high = region.size();
  while (low < high) {
    const size_t middle = low + (high - low + 1) / 2;
    void* block = region.allocate(kBlockAlign, middle);
    if (block != nullptr) region.free(block);
    if (block != nullptr)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

class RegionPlayer {
 public:
  RegionPlayer(Region& region, Input input) : region_(region), input_(input), most_(longest_in(region)) {}

  void play() {
    while (input_.more()) {
      act();
      FUZZ_EXPECT(region_.is_valid());
      FUZZ_EXPECT(region_.figures().blocks == blocks_.size());
    }
    end();
  }

 private:
  struct Entry {
    size_t size;
    unsigned seed;
  };
  using Entries = std::map<uintptr_t, Entry>;

  void act() {
    switch (input_.below(12)) {
    case 0: return fail_some();
    case 1: return static_cast<void>(region_.trim());
    case 2: return look_around();
    case 3: return input_.below(32) == 0 ? reset() : misuse();
    case 4:
    case 5: return resize();
    case 6:
    case 7:
    case 8: return free_one();
    default: return allocate();
    }
  }

  size_t some_size() { return input_.size_up_to(13); }

  void allocate() {
    const size_t alignment = kBlockAlign << (input_.below(4) == 0 ? input_.below(10) : 0), size = some_size();
    void* block = region_.allocate(alignment, size);
    if (block == nullptr) return;
    const uintptr_t start = address_of(block);
    FUZZ_EXPECT(start % alignment == 0);
    FUZZ_EXPECT(start >= region_.base() && start + size <= region_.base() + region_.size());
    const auto next = blocks_.lower_bound(start);
    FUZZ_EXPECT(next == blocks_.end() || start + size <= next->first);
    FUZZ_EXPECT(next == blocks_.begin() || std::prev(next)->first + std::prev(next)->second.size <= start);
    add(start, size);
  }

  void add(uintptr_t start, size_t size) {
    // The usable size is the user's too.
    const Region::Block what = region_.look(reinterpret_cast<void*>(start));
    FUZZ_EXPECT(what.seen == Region::Seen::block && what.asked == size && what.usable >= size);
    contract::fill(reinterpret_cast<void*>(start), size, ++seed_);
    blocks_[start] = {size, seed_};
  }

  Entries::iterator any() { return std::next(blocks_.begin(), static_cast<ptrdiff_t>(input_.below(blocks_.size()))); }

  static void* pointer(Entries::iterator at) { return reinterpret_cast<void*>(at->first); }

  void check(Entries::iterator at) { FUZZ_EXPECT(contract::intact(pointer(at), at->second.size, at->second.seed)); }

  void free_one() {
    if (blocks_.empty()) return;
    const auto at = any();
    check(at);
    FUZZ_EXPECT(region_.free(pointer(at)).seen == Region::Seen::block);
    blocks_.erase(at);
  }

  void resize() {
    if (blocks_.empty()) return;
    const auto at = any();
    const size_t size = some_size(), kept = size < at->second.size ? size : at->second.size;
    if (!region_.resize(pointer(at), size)) {
      FUZZ_EXPECT(size > at->second.size);
      return check(at);
    }
    FUZZ_EXPECT(contract::intact(pointer(at), kept, at->second.seed));
    add(at->first, size);
  }

  // None of these is the start of a live block.
  void misuse() {
    if (blocks_.empty()) return;
    auto* block = static_cast<char*>(pointer(any()));
    FUZZ_EXPECT(region_.free(block + 1).seen == Region::Seen::nothing);
    FUZZ_EXPECT(region_.free(block - kBlockAlign).seen != Region::Seen::block);
    FUZZ_EXPECT(region_.free(reinterpret_cast<void*>(region_.base() + region_.size())).seen == Region::Seen::nothing);
  }

  void look_around() {
    std::set<uintptr_t> seen;
    Region::Walk walk;
    do {
      region_.walk_on(&walk);
      for (size_t index = 0; index < walk.count; ++index) seen.insert(address_of(walk.found[index].block));
    } while (walk.count == Region::Walk::kAtOnce);
    FUZZ_EXPECT(seen.size() == blocks_.size());
    for (const auto& [start, entry] : blocks_) FUZZ_EXPECT(seen.count(start) == 1);
  }

  void fail_some() {
    fake::fail_nth(input_.below(2) == 0 ? fake::Call::commit : fake::Call::purge, 1 + input_.below(3));
  }

  void reset() {
    region_.reset();
    blocks_.clear();
  }

  void end() {
    fake::fail_nth(fake::Call::commit, 0);
    fake::fail_nth(fake::Call::purge, 0);
    while (!blocks_.empty()) {
      const auto at = blocks_.begin();
      check(at);
      FUZZ_EXPECT(region_.free(pointer(at)).seen == Region::Seen::block);
      blocks_.erase(at);
    }
    FUZZ_EXPECT(region_.is_valid() && region_.account().held() == 0 && region_.figures().in_use == 0);
    FUZZ_EXPECT(longest_in(region_) == most_);
  }

  Region& region_;
  Input input_;
  size_t most_;
  Entries blocks_;
  unsigned seed_ = 0;
};

}  // namespace rh
