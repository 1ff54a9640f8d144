// Replacing a function by writing a jump over its entry.
//
// In two steps, so that many functions can be replaced together or not at all: `prepare` decides and changes nothing;
// `commit` writes all patches at once. What the original did stays callable: its first instructions are moved to a
// trampoline that goes on behind the patch.
//
//   entry:  jmp relay            relay:       jmp [replacement]      (only where the jump does not reach it)
//           rest of original     trampoline:  moved instructions
//                                             jmp rest of original
//
// Why other threads are stopped while the patches are written: a single aligned store of the jump would be seen whole
// by every processor, but a thread may stand behind the first of the instructions that the jump covers, and would go on
// in the middle of it. Stopped, such a thread is seen: it is given time to go on, and one that does not is set to the
// same instruction in the trampoline (only then: to change where a thread runs is the part that emulators and security
// software get wrong). A return address cannot point into the covered bytes: calls there are refused. Threads made by
// other processes may come at any time, and begin in ntdll: so the pages stay executable while they are written to,
// each jump is one store where that can be, and who makes threads without end is not waited for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "code_memory.h"
#include "prepared.h"
#include "range.h"

namespace rh::redirect {

inline constexpr size_t kMostPatches = 96;  // written together

// Makes `patch` ready to lead from `function.begin` to `replacement`. `function` ends where its code surely has ended.
// NULL, or why it cannot be patched.
const char* prepare(Range function, const void* replacement, CodeMemory& memory, Patch* patch);

// Writes all of them, or none. NULL, or why none were written. The memory of the trampolines is sealed already.
const char* commit(const Patch* patches, size_t count);

// Where a function that begins at `code` really begins: behind jumps that stay within `image`.
uint8_t* follow_jumps(uint8_t* code, Range image);

// Whether the function has a direct call of, or jump to, `entry`.
bool leads_to(Range function, const uint8_t* entry, Range image);

// Whether the function ends in a jump to another within `image`, which may have other callers.
bool ends_in_tail_call(Range function, Range image);

}  // namespace rh::redirect
