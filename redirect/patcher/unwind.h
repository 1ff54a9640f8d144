// What unwinders are told of a trampoline: profilers and exception handlers walk stacks from there as from anywhere.
// Where functions have tables for that (x86_64) a trampoline needs one of its own: the moved instructions push and
// reserve as the function's own do, at other places. 32-bit code has no such tables; on arm64 a trampoline has one
// moved instruction, and is walked as a function that calls nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "code_memory.h"
#include "prepared.h"

namespace rh::redirect {

// The trampoline of `patch` is `size` bytes long. Those moved are the first `moved` of its function; `whole` when they
// are all of it. Where memory for it lacks, the trampoline stays unknown to unwinders.
void describe_trampoline(const Patch& patch, size_t moved, size_t size, bool whole, CodeMemory& memory);

}  // namespace rh::redirect
