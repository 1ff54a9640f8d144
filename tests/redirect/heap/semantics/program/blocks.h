#pragma once

#include "api.h"
#include "comparison/blocks.h"
#include "comparison/guard.h"
#include "comparison/line.h"
#include "comparison/reheap.h"

constexpr DWORD kUntouched = 12345;

// Tells what a call left in the last error, unless it left it alone, and what it raised.
void tell_effects(Line& line, DWORD error, const Raised& raised);

// One call, its last error and exceptions told by the line. Gives what a call gives that raised one: nothing.
template <typename F> auto observed(Line& line, F call) {
  decltype(call()) result{};
  SetLastError(kUntouched);
  Raised raised = guarded([&] { result = call(); });
  DWORD error = GetLastError();
  tell_effects(line, error, raised);
  return result;
}

// Whose a block must be. Where the layer of HeapAlloc is on, the plain heaps' are reheap's, and what reheap cannot do
// is the system's.
enum class Maker { reheap, system };
void expect_maker(Line& line, Maker maker, const void* block);

// What was expected, in a line that a plain run does not have.
void tell_makers();

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
