// What the fake needs from the real system.
#pragma once

#include <atomic>

#include "platform/fake/ledger.h"

namespace rh::fake {

inline void* pointer_to(uintptr_t address) { return reinterpret_cast<void*>(address); }

}  // namespace rh::fake

namespace rh::fake::system {

// Reserves address space: at range->start, or anywhere when that is 0. False, and nothing reserved, when something is
// already there.
bool take(Range* range);

// On a reserved range: makes it accessible; makes it read as zero; makes it inaccessible and empty.
bool open(Range range);
bool clear(Range range);
bool close(Range range);

// File handles, as the C library's.
int open_file(const char* path, bool replaces);

std::atomic<uint32_t>* make_shared_counter();

void on_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

}  // namespace rh::fake::system
