// Copies of this library in one process: in the program, in libraries that link it, a shared one. They know each other,
// so that a block goes back to its maker whoever frees it.
//
// A copy is found by what its image says of itself: on Windows a section that is called .reheap, on Linux a note. On
// macOS it need not be (darwin/copies.cpp). Nothing is exported, no name is shared with other processes, and a copy of
// another version is told by its size and mark.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/config.h"

namespace rh::copies {

constexpr uint32_t kMark = 0x70616568;  // "heap"

// What a copy offers to the others. On Windows pointers may lie anywhere within a block.
struct Copy {
  uint32_t mark;
  uint32_t size;  // of this structure: later versions only append
  bool (*owns)(const void* pointer);
  size_t (*bytes_from)(const void* pointer);  // asked for, from here to the block's end
  void (*free)(void* pointer);
  void (*meet)(const Copy* other);
  void (*forget)(const Copy* other);  // returns when nobody is asking it any more
  // Since the second version:
  bool (*is_in_charge)();
  bool hardened;
};

// What this one's answers are made of. All that lies in our memory is own: what is no live block is told of there.
bool is_own(const void* pointer);
void meet(const Copy* other);
void forget(const Copy* other);
bool is_in_charge();

// This copy as others are to find it, and whether they may rely on what they found.
constexpr Copy describe_by(size_t (*bytes_from)(const void* pointer), void (*free)(void* pointer)) {
  return {kMark, sizeof(Copy), is_own, bytes_from, free, meet, forget, is_in_charge, kHardened};
}
inline bool is_copy(const Copy* found) { return found->mark == kMark && found->size >= offsetof(Copy, is_in_charge); }
inline bool tells_all(const Copy* copy) { return copy->size >= sizeof(Copy); }

// In copy.cpp of each system: as the others find it, and the others by the loader's lists, which stay as they are
// meanwhile.
const Copy* this_copy();
const Copy* copy_in_program();  // that is linked into it, or null; on Windows alone
void for_each_other(void (*visit)(const Copy* other));

// At the start of this copy, with the loader's lock held: makes it and the others known to each other.
void announce();

// Whoever started the program chose this one for all of the process: one that the program brings leaves that to it.
void take_charge();
bool is_another_in_charge();

// Before it is unloaded: when this returns, no thread is in this copy's code to answer another.
void withdraw();

// Of the block that `pointer` lies in, if another copy made it; else false, and nothing done. The copy is not unloaded
// before it has answered. What lies in a region of this copy's is looked for here too, before others are asked.
bool made(const void* pointer);
bool bytes_from(const void* pointer, size_t* bytes);
bool free(void* pointer);

}  // namespace rh::copies
