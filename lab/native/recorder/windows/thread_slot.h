// What each thread has for itself. It is found through one of the OS's slots, which is read without a call: this
// compiler's own thread-local variables allocate, and TlsGetValue changes the thread's last error.
#pragma once

#include <cstdint>

namespace recorder {

struct Stream;
extern constinit Stream g_no_stream;  // nothing can be written to it

struct ThreadSlot {
  Stream* stream;
  uint64_t generation;  // of the process: there is one only
  uint32_t number;
  bool ended;
  bool inside = false;  // a call that is recorded is under way: what it calls in turn is not
};

// Before anything is recorded. False when the OS has no slot left that can be read so.
bool begin_thread_slots();

ThreadSlot& make_thread_slot();
void forget_thread_slot();  // this thread makes no more calls

// Counted from the thread's environment block.
inline constinit uint32_t g_slot_offset = 0;

inline ThreadSlot* existing_thread_slot() {
  ThreadSlot* slot;
  asm volatile("movq %%gs:(%1), %0" : "=r"(slot) : "r"(uint64_t{g_slot_offset}));
  return slot;
}

inline ThreadSlot& thread_slot() {
  ThreadSlot* slot = existing_thread_slot();
  return slot != nullptr ? *slot : make_thread_slot();
}

inline Stream* current_stream() { return thread_slot().stream; }

}  // namespace recorder
