// What stands behind a block: bytes that its user has no right to say, in a way that nobody can guess, where they lie
// and who made the block. They are looked at directly behind its last byte and where its memory ends. So a write behind
// the end, or before the start of the block that follows, is seen when the block is freed; and so is a block freed by
// the wrong function. (Canaries: C. Cowan et al., StackGuard, 1998.)
#pragma once

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
  Tail(void* block, size_t size, size_t room) : block_(static_cast<unsigned char*>(block)), size_(size), room_(room) {}

  void write(Maker maker) const {
    if (RH_UNLIKELY(length() < kLength)) return write_short(maker);
    write_whole(maker);
  }

  bool is(Maker maker) const { return RH_UNLIKELY(length() < kLength) ? is_short(maker) : is_whole(value_of(maker)); }

  // The same of one that is not short.
  RH_INLINE void write_whole(Maker maker) const {
    uint64_t last = value_of(maker), first = turned(last, start());
    __builtin_memcpy(start(), &first, kLength);
    __builtin_memcpy(last_word(), &last, kLength);
  }

  RH_INLINE bool is_whole(uint64_t value) const {
    uint64_t first, last;
    __builtin_memcpy(&first, start(), kLength);
    __builtin_memcpy(&last, last_word(), kLength);
    return last == value && first == turned(value, start());
  }

  // What is repeated at every multiple of kLength; from elsewhere on it is the same, turned. All targets put the lowest
  // byte first.
  RH_INLINE static uint64_t value_of(const void* block, Maker maker) {
    uint64_t number = (address_of(block) + static_cast<uint64_t>(maker)) ^ secret(Secret::tails);
    return folded_product(number, secret(Secret::tail_factor));
  }

 private:
  RH_INLINE uint64_t value_of(Maker maker) const { return value_of(block_, maker); }
  RH_INLINE static uint64_t turned(uint64_t value, const unsigned char* place) {
    unsigned bits = static_cast<unsigned>(address_of(place)) * 8 % 64;
    return value >> bits | value << (-bits % 64);
  }
  unsigned char byte_at(const unsigned char* place, Maker maker) const {
    return static_cast<unsigned char>(turned(value_of(maker), place));
  }
  RH_INLINE unsigned char* start() const { return block_ + size_; }
  RH_INLINE unsigned char* last_word() const { return block_ + room_ - kLength; }
  RH_INLINE size_t length() const { return room_ - size_; }

  void write_short(Maker maker) const {
    for (unsigned char* at = start(); at < block_ + room_; ++at) *at = byte_at(at, maker);
  }
  bool is_short(Maker maker) const {
    for (const unsigned char* at = start(); at < block_ + room_; ++at)
      if (*at != byte_at(at, maker)) return false;
    return true;
  }

  unsigned char* block_;
  size_t size_, room_;
};

}  // namespace rh::hardened
