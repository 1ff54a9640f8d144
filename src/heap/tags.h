// Tags: names that a thread gives, for a while, to what it allocates. Each thread has a first-class heap of its own for
// each tag that it uses, bound to it, so that a slab's blocks are all of one tag. The thread's word leads there while
// the tag is in force: malloc and free know nothing of it. docs/design/tags.md says why.
//
// So it has, in the hardened build, for each partition that the blocks of some types are to lie in, and again for each
// tag (docs/design/types.md).
//
// Such heaps stay, like threads' heaps: when the thread has ended, the next that uses the tag takes over one.
#pragma once

#include "heap/types.h"

namespace rh::tags {

using Tag = unsigned;
inline constexpr Tag kUntagged = 0;
inline constexpr size_t kMost = 255;  // beside kUntagged
inline constexpr size_t kMostLetters = 63;

// The tag of that name, new unless there is one. kUntagged when all are taken, and for a name that is empty or too
// long. Holding no lock.
Tag create(const char* name);

// Whether a tag can have that name.
bool is_name(const char* name);

// Tags are the numbers below.
Tag count();
inline bool exists(Tag tag) { return tag < count(); }
const char* name_of(Tag tag);

// Of a tag but kUntagged.
Account& account_of(Tag tag);

// From now on the calling thread's allocations are of that tag, until pop() brings back the one before; `own` is its
// own heap, or null for want of memory. False when it could not be brought into force (no memory, too deep): then the
// one before is still, and pop() ends that as well.
bool push(Heap* own, Tag tag);

// Of more pops than pushes, those too many do nothing.
void pop();

// The tag in force for the calling thread.
Tag in_force();

// The heap that the calling thread, whose own is given, allocates from what is of that partition, under the tag in
// force. Null when there is no memory for it.
Heap* heap_for(Heap* own, Partition partition);

// All heaps of the tag and the partition, linked by next_of_tag. The list only grows; it may be walked without a lock.
Heap* heaps_of(Tag tag, Partition partition);

}  // namespace rh::tags
