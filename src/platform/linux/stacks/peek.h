// Reading memory of which nobody knows whether it is there: the kernel copies it, or says that it cannot.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rh::stacks {

// False when not all of it could be read.
bool peek(uintptr_t at, void* to, size_t bytes);

// Several pieces, which begin so many bytes apart, by one call to the kernel. More would take more of the stack.
inline constexpr unsigned kMostPieces = 8;
bool peek_each(uintptr_t at, size_t apart, unsigned pieces, void* to, size_t bytes);

template <class Value> bool peek(uintptr_t at, Value& to) { return peek(at, &to, sizeof to); }

// Reads numbers one after the other in [at, end). What cannot be read is 0, and `failed` from there on.
class Peeking {
 public:
  Peeking(uintptr_t at, uintptr_t end) : at_(at), end_(end) {}

  bool failed() const { return failed_; }
  bool more() const { return !failed_ && at_ < end_; }
  uintptr_t at() const { return at_; }
  uintptr_t end() const { return end_; }
  void skip(uint64_t bytes);
  void end_at(uintptr_t end) {
    end_ = end;
    if (end < window_end_) window_end_ = end;
  }

  template <class Value> Value get() {
    Value value{};
    if (ready() < sizeof value && !fill(sizeof value)) return value;
    __builtin_memcpy(&value, window_ + (at_ - window_at_), sizeof value);
    at_ += sizeof value;
    return value;
  }
  uint64_t get_uleb() {
    const auto first = get<uint8_t>();
    return first < 0x80 ? first : get_long_uleb(first);
  }
  int64_t get_sleb();

 private:
  size_t ready() const { return at_ < window_end_ ? window_end_ - at_ : 0; }
  uint64_t get_long_uleb(uint8_t first);
  bool fill(size_t least);  // the window, from here on
  bool fail() {
    window_end_ = 0;
    failed_ = true;
    return false;
  }

  uintptr_t at_;
  uintptr_t end_;
  uintptr_t window_at_ = 0;
  uintptr_t window_end_ = 0;
  bool failed_ = false;
  uint8_t window_[64];
};

}  // namespace rh::stacks
