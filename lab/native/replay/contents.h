// What the replayer writes into blocks, and how it finds that somebody else did.
//
// A block is filled with its seed, eight bytes repeated; so any eight bytes of it can be checked alone. Which of them
// are written is --touch: the ends; the whole; or as recorded, which is the whole of a small block, and of a large one
// a word in each page that was resident when it was recorded.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "replay/compiled.h"

namespace lab {

enum class Touch { kRecorded, kWhole, kEnds };

// How far a block is used from its start, in bytes.
inline std::uint64_t used_bytes(std::uint64_t size, std::uint32_t touched_kib, Touch touch) {
  if (touch != Touch::kRecorded || touched_kib == compiled::kTouchUnknown) return size;
  return std::min(size, std::uint64_t{touched_kib} * 1024);
}

class Contents {
 public:
  Contents(void* block, std::uint64_t seed) : block_(static_cast<char*>(block)), seed_(seed) {}

  // Writes what `touch` asks for of [from, to).
  void fill(std::uint64_t from, std::uint64_t to, Touch touch) {
    if (from >= to) return;
    put(from, to);
    if (to - from > 8) put(to - 8, to);
    if (touch == Touch::kEnds || to - from <= 16) return;
    const std::uint64_t step = touch == Touch::kRecorded && to >= compiled::kLargeBlock ? 4096 : 8;
    for (std::uint64_t at = (from + 7) & ~std::uint64_t{7}; at + 8 <= to; at += step)
      std::memcpy(block_ + at, &seed_, sizeof seed_);  // there it is not rotated
  }

  // True when [from, to) still is what `fill` wrote there: its two ends, or all of it with --touch whole.
  bool intact(std::uint64_t from, std::uint64_t to, Touch touch) const {
    if (from >= to) return true;
    bool good = same(from, to) && (to - from <= 8 || same(to - 8, to));
    if (touch != Touch::kWhole) return good;
    for (std::uint64_t at = from; good && at + 8 <= to; at += 8) good = same(at, to);
    return good;
  }

  bool zeroed(std::uint64_t to, Touch touch) const {
    const std::uint64_t step = touch == Touch::kWhole || to <= 8 ? 1 : to - 1;
    for (std::uint64_t at = 0; at < to; at += step)
      if (block_[at] != 0) return false;
    return true;
  }

 private:
  std::uint64_t word(std::uint64_t at) const { return std::rotr(seed_, static_cast<int>(8 * (at % 8))); }
  void put(std::uint64_t at, std::uint64_t to) {
    const std::uint64_t value = word(at);
    // A copy of known length is one instruction.
    if (to - at >= sizeof value)
      std::memcpy(block_ + at, &value, sizeof value);
    else
      std::memcpy(block_ + at, &value, to - at);
  }
  bool same(std::uint64_t at, std::uint64_t to) const {
    const std::uint64_t value = word(at);
    if (to - at >= sizeof value) return std::memcmp(block_ + at, &value, sizeof value) == 0;
    return std::memcmp(block_ + at, &value, to - at) == 0;
  }

  char* block_;
  std::uint64_t seed_;
};

}  // namespace lab
