// All regions there are (heap/region.h). Which one a pointer lies in is asked for every pointer that is not the
// realm's: without a lock, while others come and go. A region whose blocks are being used is found whatever happens to
// others.
#pragma once

#include "heap/region.h"

namespace rh::regions {

// So many at a time. To find one takes longer the more there are.
inline constexpr unsigned kMost = 1024;

enum class Failure : uint8_t {
  none,
  invalid,  // no such memory can be used
  memory,   // there is none, or there are too many regions
};
struct Made {
  Region* region;
  Failure failure;
};

// Over the caller's memory, which is his again when the region was destroyed. `invalid`: null, too short, longer than
// Region::kMostBytes, beyond the address space, or in part another region's or the library's own.
Made make_in(void* memory, size_t size);

// Over address space of `size` bytes, rounded up to whole pages, every byte of which a signed displacement of 32 bits
// reaches from `code`. It is looked for at multiples of a mebibyte, the nearest first. `invalid`: null, or a size that
// does not fit there; `memory`: nothing is free there.
Made make_near(const void* code, size_t size);

// Nobody else uses it, or a block of it.
void destroy(Region* region);

// The region that an address lies in, or null.
Region* find(const void* pointer);

// That of a handle, which is a number and no address: null once it was destroyed.
Region* of_handle(uintptr_t handle);

// Gives free pages of all back to the OS. Gives the bytes.
size_t trim();

struct Figures {
  size_t count = 0, held = 0;          // of all
  size_t reserved = 0, committed = 0;  // of near ones
};
Figures figures();

// Around a fork, by the forking thread; `taken`: what could be held was taken from the fork meanwhile.
void before_fork(ThreadToken token, uint64_t patience_ms);
void after_fork_in_parent(ThreadToken token);
void after_fork_in_child(ThreadToken token, bool taken);

// A thread was terminated that held `lock`, which the caller has now. False: it is none of these.
bool put_in_order(Lock& lock);

}  // namespace rh::regions
