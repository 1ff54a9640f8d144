// What of a range is whole pages. Units of the arena, and blocks, may be shorter than a page.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "platform/platform.h"

namespace rh::platform {

struct Pages {
  uintptr_t start, end;  // start >= end: there are none
  bool empty() const { return start >= end; }
  size_t size() const { return end - start; }
};

inline Pages pages_within(uintptr_t start, uintptr_t end) {
  return {align_up(start, page_size()), align_down(end, page_size())};
}

inline bool is_whole_pages(uintptr_t start, uintptr_t end) { return (start | end) % page_size() == 0; }

// Makes a committed range zero, its pages by replace_by_zeros(). False when the OS cannot, or it holds no page: the
// content of the pages is then undefined.
inline bool make_zero(uintptr_t start, uintptr_t end) {
  const Pages pages = pages_within(start, end);
  if (pages.empty() || !replace_by_zeros(pages.start, pages.size())) return false;
  __builtin_memset(reinterpret_cast<void*>(start), 0, pages.start - start);
  __builtin_memset(reinterpret_cast<void*>(pages.end), 0, end - pages.end);
  return true;
}

}  // namespace rh::platform
