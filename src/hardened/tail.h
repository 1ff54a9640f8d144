// What stands behind a block: bytes that its user has no right to say, in a way that nobody can guess, where they lie
// and who made the block. They are looked at directly behind its last byte and where its memory ends. So a write behind
// the end, or before the start of the block that follows, is seen when the block is freed; and so is a block freed by
// the wrong function. (Canaries: C. Cowan et al., StackGuard, 1998.)
#pragma once

#include <bit>

#include "base/bits.h"
#include "base/compiler.h"
#include "base/secret.h"

namespace rh::hardened {

// Which function made a block; its counterpart has to free it. `any`: who frees it does so for somebody unknown.
enum class Maker : uint8_t { c, single, array, any };
inline constexpr Maker kMakers[] = {Maker::c, Maker::single, Maker::array};

// The size that who frees a block says it has, when he says none.
inline constexpr size_t kUnknown = SIZE_MAX;

class Tail {
 public:
  // What is read and written at a time. A block with less behind it has a shorter tail, or none.
  static constexpr size_t kLength = 8;

  // Of a block of `size` bytes, whose memory ends at a multiple of kLength, `room` bytes behind its start.
  Tail(void* block, size_t size, size_t room)
      : block_(block), start_(static_cast<unsigned char*>(block) + size), length_(room - size) {}

  void write(Maker maker) const {
    if (RH_UNLIKELY(length_ < kLength)) return write_short(maker);
    uint64_t last = value_of(maker), first = turned(last, start_);
    __builtin_memcpy(start_, &first, kLength);
    __builtin_memcpy(last_word(), &last, kLength);
  }

  bool is(Maker maker) const {
    if (RH_UNLIKELY(length_ < kLength)) return is_short(maker);
    uint64_t first, last;
    __builtin_memcpy(&first, start_, kLength);
    __builtin_memcpy(&last, last_word(), kLength);
    uint64_t value = value_of(maker);
    return first == turned(value, start_) && last == value;
  }

 private:
  // Repeated at every multiple of kLength; from elsewhere on it is the same, turned. All targets put the lowest byte
  // first.
  uint64_t value_of(Maker maker) const {
    uint64_t number = (address_of(block_) + static_cast<uint64_t>(maker)) ^ secret(Secret::tails);
    number *= 0x9e3779b97f4a7c15u;
    number ^= number >> 32;
    return number * 0xd6e8feb86659fd93u ^ secret(Secret::tail_ends);
  }
  static uint64_t turned(uint64_t value, const unsigned char* place) {
    return std::rotr(value, static_cast<int>(address_of(place) % kLength * 8));
  }
  unsigned char byte_at(const unsigned char* place, Maker maker) const {
    return static_cast<unsigned char>(turned(value_of(maker), place));
  }
  unsigned char* last_word() const { return start_ + length_ - kLength; }

  void write_short(Maker maker) const {
    for (size_t at = 0; at < length_; ++at) start_[at] = byte_at(start_ + at, maker);
  }
  bool is_short(Maker maker) const {
    for (size_t at = 0; at < length_; ++at)
      if (start_[at] != byte_at(start_ + at, maker)) return false;
    return true;
  }

  void* block_;
  unsigned char* start_;
  size_t length_;
};

}  // namespace rh::hardened
