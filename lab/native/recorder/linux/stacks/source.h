// The stacks that allocations are made by. What an allocator returns is seen here first, and of some of it the stack is
// kept until it is recorded (stream.h).
#pragma once

#include "linux/next.h"
#include "stream/stream.h"

namespace recorder {

// Whether it is known how to follow the frames of this processor.
bool can_follow_frames();

// Before the first event of a process, and of each child. Without memory for it, no stacks are recorded.
StackSource begin_stacks(uint32_t every_bytes);

// The allocator in g_found, with samples taken of what it returns.
Next sampled(const Next& found);

// The stack of the block is that of the caller.
void note_stack(const void* block);

// A library was unloaded: another one may come where it was.
void note_unload();

}  // namespace recorder
