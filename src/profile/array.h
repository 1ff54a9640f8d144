// A list that grows, in memory straight from the OS. What it holds is copied when it grows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/platform.h"

namespace rh::profile {

// Memory of its own, which reads as zero: a multiple of kGrain. Null when there is none.
inline constexpr size_t kGrain = 64 * 1024;

inline void* take_memory(size_t size) {
  const uintptr_t at = platform::reserve(size, platform::kPageSize);
  if (at == 0) return nullptr;
  if (platform::commit(at, size)) return reinterpret_cast<void*>(at);
  platform::release(at, size);
  return nullptr;
}

inline void give_memory(void* memory, size_t size) {
  if (memory != nullptr) platform::release(reinterpret_cast<uintptr_t>(memory), size);
}

template <typename T> class Array {
 public:
  size_t count() const { return count_; }
  T& operator[](size_t index) { return at_[index]; }
  const T& operator[](size_t index) const { return at_[index]; }
  T* data() { return at_; }
  const T* data() const { return at_; }

  // False when there is no memory for so many more.
  bool make_room(size_t more) {
    if (more <= bytes_ / sizeof(T) - count_) return true;
    size_t bytes = bytes_ == 0 ? kGrain : 2 * bytes_;
    while (bytes / sizeof(T) - count_ < more) bytes *= 2;
    T* fresh = static_cast<T*>(take_memory(bytes));
    if (fresh == nullptr) return false;
    if (count_ != 0) __builtin_memcpy(static_cast<void*>(fresh), at_, count_ * sizeof(T));
    give_memory(at_, bytes_);
    at_ = fresh;
    bytes_ = bytes;
    return true;
  }

  // After make_room.
  T& add() { return at_[count_++]; }

  // Of one whose elements lie anywhere: all of them, zero.
  bool make_zeros(size_t count) {
    if (!make_room(count)) return false;
    count_ = count;
    return true;
  }

  void clear() {
    give_memory(at_, bytes_);
    *this = {};
  }

  void swap(Array& other) {
    const Array kept = other;
    other = *this;
    *this = kept;
  }

 private:
  T* at_ = nullptr;
  size_t count_ = 0;
  size_t bytes_ = 0;
};

}  // namespace rh::profile
