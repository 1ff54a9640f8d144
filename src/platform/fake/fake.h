// The fake platform: platform.h for tests. Memory is real, taken once from the system; every call is entered in a
// ledger that ends the process when a precondition of platform.h is broken. The clock stands still until the test moves
// it, any call can be made to fail, and one thread can play several.
//
// What is set here holds for the process: a test that needs a fresh allocator runs in a process of its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/platform.h"

namespace rh::fake {

// ---- failing calls ------------------------------------------------------------------------------

enum class Call { reserve, commit, purge, move, start_helper, count };

// From now on the `nth` call of this kind fails, 1 being the next one; 0 takes it back.
void fail_nth(Call kind, size_t nth);

// The same, and all calls after it.
void fail_from(Call kind, size_t nth);

// All calls of this kind fail, or none any longer.
void fail_all(Call kind, bool failing);

// Calls made so far, the failed ones included.
size_t calls(Call kind);

// ---- memory -------------------------------------------------------------------------------------

// Address space that may be reserved in addition to the default. False when the system has something there.
bool add_space(uintptr_t address, size_t size);

// Where the default space begins. There begins a 64-bit realm placed freely, which has its table at table_start().
uintptr_t space_start();
uintptr_t table_start();

// Makes a range of the space somebody else's.
void occupy(uintptr_t address, size_t size);

// At most this much may be committed, or reserved, from now on.
void limit_committed(size_t bytes);
void limit_reserved(size_t bytes);

size_t committed_bytes();
size_t reserved_bytes();
bool is_committed(uintptr_t address, size_t size);

// Locks pages in memory, as mlock does, or unlocks them. A purge ends at the first that is locked, and so does a
// replacement by zeros; what lies before it has gone by then. Where purges uncommit, they unlock.
void lock_pages(uintptr_t address, size_t size);
void unlock_pages(uintptr_t address, size_t size);

// Called in the middle of each purge, by the thread that purges.
void on_purge(void (*hook)());

// From now on a purge takes the range's charge away too, as on Windows.
void set_purge_uncommits(bool uncommits);

// A move that fails takes away what was at its target, as Linux may.
void set_failed_moves_lose(bool lose);

void set_places_freely(bool freely);
void set_image_address(uintptr_t address);

// ---- time and threads ---------------------------------------------------------------------------

void set_clock(uint64_t now_ms);
void advance(uint64_t ms);

// A thread that exists in name only: `become` makes the calling thread play it and gives the number of the one played
// before. With `token` as its token, or one of its own when that is 0.
uint32_t make_thread(uint32_t token = 0);
uint32_t become(uint32_t thread);

// What it owns has no owner from now on.
void end_thread(uint32_t thread);

// How often a thread became the owner of something.
uint64_t acquisitions();

// Called in place of every pause that a thread makes to let others go on.
void on_back_off(void (*hook)());

// From now on the process is ending, all other threads are gone.
void set_others_are_gone(bool gone);

// The thread of that token was terminated, as the system tells. 0: nobody was.
void set_terminated(platform::ThreadToken token);

// The helper thread runs only here. It sleeps as long as it wanted to (the clock moves on by that), does its work, and
// waits again. True when it is still there then.
bool step_helper();
bool helper_is_there();

// ---- messages -----------------------------------------------------------------------------------

// What was written to the error stream, which gets it as well.
const char* errors();
void clear_errors();

}  // namespace rh::fake
