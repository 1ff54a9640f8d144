// Memory that goes back to the OS: by the threads that free while no helper runs, and by a helper thread that exists
// only while there is something to return.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "heap/retained.h"

namespace rh {
struct Heap;
}

namespace rh::idle {

// How long free memory stays warm.
void set_decay_ms(uint64_t decay_ms);
uint64_t decay_ms();

// Memory may have become free: sees to it that it will be returned. Holding no lock.
void note_free();

// Whether heaps hold back much that nobody sees to: then those who allocate are to call note_free() too, for they may
// be the only ones who do anything.
RH_HIDDEN extern constinit std::atomic<uint32_t> g_helper_runs;
inline bool is_needed() { return retained::is_much() && g_helper_runs.load(std::memory_order_relaxed) == 0; }

// The layer above keeps blocks from use: `let_go` frees those of a heap, by its owner. It is called when memory is
// short, or a limit met, before a request is refused; and, also by a thread without a heap, when a heap was left
// behind. Holding no lock.
void let_go_by(void (*let_go)(Heap*));

// Memory is short: collects what is free in every heap. True when there is more now. Holding no lock.
bool reclaim();

// A limit of a first-class heap's or a tag's was met: collects what is free in it, or in all heaps of the tag.
void collect_beside(Heap* heap);

// Returns at once what can be returned. Gives the bytes.
size_t trim();

// Has a first-class heap give up what of it is free: to the arena, but for free pages of slabs in use, which go back to
// the OS. Gives how much less it holds.
size_t trim_heap(Heap* heap);

// While one lives no helper thread is there, and what is due is returned by those who free.
class WithoutHelper {
 public:
  WithoutHelper();
  ~WithoutHelper();
  WithoutHelper(const WithoutHelper&) = delete;
  WithoutHelper& operator=(const WithoutHelper&) = delete;
};

// The same from now on.
void do_without_helper();

// From now on the program's waits ask what follows: a program of one thread needs no helper then.
void let_waits_return();

// To be asked by a thread about to wait. What has been free for decay_ms() goes back at once; true when, all the same,
// there is much that will be due after that time, and this thread is the only one: then it is to call
// return_while_waiting() when it has waited so long, which returns what takes some milliseconds. True when there is
// more: it is to be called again once the thread has seen that its wait is not over. In signal handlers too.
bool returns_before_waiting();
bool return_while_waiting();

void after_fork_in_child();

}  // namespace rh::idle
