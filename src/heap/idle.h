// Memory that goes back to the OS: by the threads that free while no helper runs, and by a helper thread that exists
// only while there is something to return.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rh::idle {

// How long free memory stays warm.
void set_decay_ms(uint64_t decay_ms);
uint64_t decay_ms();

// Memory may have become free: sees to it that it will be returned. Holding no lock.
void note_free();

// Counts what heaps hold back and a helper could collect from them while their threads sleep: current slabs, and blocks
// that wait for their owner.
void note_held(size_t bytes);
void note_let_go(size_t bytes);

// Whether so much of it came together that it is worth a look: then note_free is to be called, holding no lock.
bool much_is_held();

// Memory is short: collects what is free in every heap. True when there is more now. Holding no lock.
bool reclaim();

// Returns at once what can be returned. Gives the bytes.
size_t trim();

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

// Whether a thread about to wait is to return memory itself: it is the only one, and nobody would start a helper. What
// has been free for decay_ms() goes back at once; what has not may when the thread has waited. In signal handlers too.
bool is_left_to_waiting();

// By such a thread, having waited for decay_ms(): returns what is free.
void return_while_waiting();

void after_fork_in_child();

}  // namespace rh::idle
