// The fake platform: platform.h for tests. Memory is real, taken once from the system; a ledger records every call and
// ends the process when a precondition of platform.h is broken. The clock stands still until the test moves it, any
// call can be made to fail, and one thread can play several.
//
// Settings here hold for the process: a test that needs a fresh allocator runs in a process of its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/platform.h"

namespace rh::fake {

// ---- failing calls ------------------------------------------------------------------------------

enum class Call { reserve, commit, purge, move, guard, unguard, start_helper, open, count };

// From now on the `nth` call of this kind fails, 1 being the next one; 0 cancels this.
void fail_nth(Call kind, size_t nth);

// The same for this and all later calls.
void fail_from(Call kind, size_t nth);

// All calls of this kind fail, or no longer do.
void fail_all(Call kind, bool failing);

// Calls made so far, including failed ones.
size_t calls(Call kind);

// ---- memory -------------------------------------------------------------------------------------

// From now on the system's pages are so long: before anything is reserved. Else as FAKE_PAGE_KIB in the environment
// says, or kPageSize.
void set_page_size(size_t bytes);

// Adds address space that may be reserved. False when the system has something there.
bool add_space(uintptr_t address, size_t size);

// Start of the default space. A freely placed 64-bit realm starts there, with its table at table_start().
uintptr_t space_start();
uintptr_t table_start();

// Makes a range of the space appear taken by others.
void occupy(uintptr_t address, size_t size);

// Limits how much may be committed, or reserved, from now on.
void limit_committed(size_t bytes);
void limit_reserved(size_t bytes);

size_t committed_bytes();
size_t reserved_bytes();
bool is_committed(uintptr_t address, size_t size);

// Whether the system can be asked for huge pages, and for how much memory it was.
void set_has_huge(bool has);
size_t huge_bytes();

// From now on no address from `end` on can be chosen: the answer is `refused`, or where the system takes an address for
// a wish, `occupied`.
void end_address_space(uintptr_t end, platform::Reserve answer);

// Locks pages in memory, as mlock does, or unlocks them. A purge stops at the first locked page, and so does a
// replacement by zeros; what lies before it is gone by then. Where purges decommit, they unlock.
void lock_pages(uintptr_t address, size_t size);
void unlock_pages(uintptr_t address, size_t size);

// Sets a hook called in the middle of each purge, by the thread that purges.
void on_purge(void (*hook)());

// Sets a hook called before each call that reserves, releases, commits or purges, by the thread that makes it.
void on_memory_call(void (*hook)());

// From now on a purge also releases the charge of the range, as on Windows.
void set_purge_uncommits(bool uncommits);

// Failed moves unmap what was at their target, as Linux may.
void set_failed_moves_lose(bool lose);

void set_places_freely(bool freely);
void set_image_address(uintptr_t address);  // of "program", which is a mebibyte long

// 0: the real one.
void set_process_id(uint64_t id);

// ---- limits -------------------------------------------------------------------------------------

// A file of the system, as platform::read_grant sees it; a null text removes it.
void set_file(const char* path, const char* text);

// How much memory the machine has, and whether the system says that it is short.
void set_machine_memory(uint64_t bytes);
void set_pressure(bool is_short);

// ---- time and threads ---------------------------------------------------------------------------

void set_clock(uint64_t now_ms);
void advance(uint64_t ms);

// A simulated thread: `become` makes the calling thread play it and returns the number of the one played before. Its
// token is `token`, or one of its own when that is 0.
uint32_t make_thread(uint32_t token = 0);
uint32_t become(uint32_t thread);

// Where the threads run that follow.
void set_node(unsigned node);

// What it owns is ownerless from now on.
void end_thread(uint32_t thread);

// How many times a thread has acquired ownership of something.
uint64_t acquisitions();

// Sets a hook called in place of every pause that a thread makes to let others run.
void on_back_off(void (*hook)());

// Whether the program is one of a single thread.
void set_single_threaded(bool single);

// From now on the process is ending and all other threads are gone.
void set_others_are_gone(bool gone);

// Makes the system report the thread with that token as terminated. 0: none is.
void set_terminated(platform::ThreadToken token);

// What is said of calls that the thread may have left without returning: not that it has, to begin with.
void set_has_left_call(bool has_left);

// The helper thread runs only here. It sleeps as long as it wanted to (the clock moves on by that), does its work, and
// waits again. True when it is still alive then.
bool step_helper();
bool helper_is_there();

// ---- faults -------------------------------------------------------------------------------------

// A thread accesses memory, and the system refuses it: what looks at that does so. False when nobody does.
bool fault(uintptr_t address, platform::Access access);

// ---- stacks -------------------------------------------------------------------------------------

// The stack that every thread has from now on, the innermost frame first; of `count` frames, at most kMostFrames.
void set_stack(const uintptr_t* frames, unsigned count);

// Sets a hook called whenever a stack is followed.
void on_stack(void (*hook)());

// Where the only module lies: /fake/program, from 0x1000 in its file on, with the build id 01fe.
inline constexpr uintptr_t kModuleStart = 0x400000, kModuleEnd = 0x500000;

// ---- tools that watch from outside -------------------------------------------------------------

// What they were told last: of `size` 0, that a block is about to be freed. `count` more were told before.
struct Told {
  uintptr_t block;
  uint64_t size, stands_for;
  size_t count;
};
Told told();

// ---- signals ------------------------------------------------------------------------------------

// The only signal that others may listen to arrives. False when nobody listens.
inline constexpr uint64_t kSignal = 12;
bool send_signal();

// ---- messages -----------------------------------------------------------------------------------

// What was written to the error stream, which receives it as well.
const char* errors();
void clear_errors();

}  // namespace rh::fake
