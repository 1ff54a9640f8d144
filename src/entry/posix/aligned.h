// The rules of the C library's functions for alignments, whatever they allocate by: `allocate` takes an alignment, a
// power of two, and a size, and sets errno when it gives null.
#pragma once

#include <errno.h>

#include "base/bits.h"
#include "entry/rules.h"

namespace rh::aligned {

inline void* fail(int error) {
  errno = error;
  return nullptr;
}

// What POSIX asks for beyond a power of two.
inline bool valid_for_posix(size_t alignment) { return is_power_of_two(alignment) && alignment % sizeof(void*) == 0; }

template <typename Allocate> RH_INLINE void* aligned_alloc(size_t alignment, size_t size, Allocate allocate) {
  return is_power_of_two(alignment) ? allocate(alignment, size) : fail(EINVAL);
}

template <typename Allocate>
RH_INLINE int posix_memalign(void** block, size_t alignment, size_t size, Allocate allocate) {
  if (!valid_for_posix(alignment)) return EINVAL;
  int before = errno;
  void* made = allocate(alignment, size);
  errno = before;
  if (made == nullptr) return ENOMEM;
  *block = made;
  return 0;
}

// As in glibc, an alignment that is no power of two means the next one.
template <typename Allocate> RH_INLINE void* memalign(size_t alignment, size_t size, Allocate allocate) {
  return alignment > kMaxRequest ? fail(EINVAL) : allocate(std::bit_ceil(alignment), size);
}

template <typename Allocate> RH_INLINE void* pvalloc(size_t size, Allocate allocate) {
  if (size > kMaxRequest) return rules::out_of_memory();
  return allocate(platform::page_size(), align_up(size == 0 ? 1 : size, platform::page_size()));
}

}  // namespace rh::aligned
