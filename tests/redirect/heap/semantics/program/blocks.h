#pragma once

#include <initializer_list>

#include "api.h"
#include "comparison/blocks.h"
#include "observed.h"
#include "reheap.h"

constexpr size_t kNoSize = ~size_t{0};

constexpr Huge kHuge[] = {{"max", kMost},
                          {"max-1", kMost - 1},
                          {"max-15", kMost - 15},
                          {"max-31", kMost - 31},
                          {"max-4k", kMost - 4096},
                          {"max-64k", kMost - 65536},
                          {"half+1", kMost / 2 + 1},
                          {"half", kMost / 2},
                          {"half-64k", kMost / 2 - 64 * kKiB}};

// A heap and the way to it.
struct Subject {
  const Door& door;
  const char* name;
  HANDLE heap;
  Maker maker;
  size_t largest;  // that it is asked for

  void* alloc(size_t size, DWORD flags = 0) const { return door.alloc(heap, flags, size); }
  BOOL free(void* block) const { return door.free(heap, 0, block); }
};

// A private heap for one check.
class Private {
 public:
  explicit Private(const Door& door, DWORD flags = 0, size_t maximum = 0)
      : door_(door), heap_(door.create(flags, 0, maximum)) {}
  ~Private() {
    if (heap_ != nullptr) door_.destroy(heap_);
  }
  Private(const Private&) = delete;
  Private& operator=(const Private&) = delete;
  operator HANDLE() const { return heap_; }
  HANDLE release() {
    HANDLE heap = heap_;
    heap_ = nullptr;
    return heap;
  }

 private:
  const Door& door_;
  HANDLE heap_;
};

// Memory of about the size that was in use and is free again, not zero: what is not zeroed would show it.
void leave_dirty(const Subject& subject, size_t size);

// What is seen of a live block: null, where it lies, its exact size, whether the heap calls it valid.
void tell_block(Line& line, const Subject& subject, const void* block);

void tell_freed(Line& line, const Subject& subject, void* block);

// A short name of flags for a line.
const char* name_of_flags(DWORD flags);
