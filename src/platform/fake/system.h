// What the fake takes from the system under it.
#pragma once

#include <atomic>

#include "platform/fake/ledger.h"

namespace rh::fake::system {

// Takes address space, inaccessible: at range->start, or anywhere when that is 0. False, and nothing taken, when there is
// something already.
bool take(Range* range);

// Of a range that was taken: makes it accessible, makes it read as zero, makes it inaccessible and empty.
bool open(Range range);
bool clear(Range range);
bool close(Range range);

// Handles to files, as the C library's.
int create_file(const char* path);

std::atomic<uint32_t>* make_shared_counter();

void on_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

}  // namespace rh::fake::system
