// Counts what heaps hold back: free memory that a thread keeps for itself, and that others can collect.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/compiler.h"

namespace rh::retained {

// What a helper could collect from threads' heaps while the threads sleep: current slabs, empty ones, and blocks that
// wait for their owner.
void add(size_t bytes);
void subtract(size_t bytes);

// Whether it is worth a look: then idle::note_free is to be called, holding no lock.
RH_HIDDEN extern constinit std::atomic<bool> g_is_much;
inline bool is_much() { return g_is_much.load(std::memory_order_relaxed); }

// All of it was looked at: what is added from here on counts anew.
void begin_count();

// What was freed into first-class heaps since they were collected from: all that is free there can be collected while
// they are at rest. And into those of threads that do not look after it.
extern constinit std::atomic<size_t> g_freed;
inline void add_freed(size_t bytes) { g_freed.fetch_add(bytes, std::memory_order_relaxed); }
inline size_t freed() { return g_freed.load(std::memory_order_relaxed); }
inline void forget_freed() { g_freed.store(0, std::memory_order_relaxed); }

// The length of slabs of which little is in use: their free pages can be returned (heap/sparse.h).
extern constinit std::atomic<size_t> g_sparse;
inline void add_sparse(size_t bytes) { g_sparse.fetch_add(bytes, std::memory_order_relaxed); }
inline size_t sparse() { return g_sparse.load(std::memory_order_relaxed); }

}  // namespace rh::retained
