// What each thread has for itself. It is found through one of the OS's slots, which is read without a call: this
// compiler's own thread-local variables allocate, and TlsGetValue changes the thread's last error.
#pragma once

#include <cstdint>

namespace recorder {

struct Stream;
extern constinit Stream g_no_stream;  // nothing can be written to it

struct ThreadSlot {
  Stream* stream;
  uint64_t generation;  // of the process: there is one only, or none yet
  uint32_t number;
  bool ended;
  // Where on the stack a call stands that is under way: what it calls in turn is not recorded. It is compared with the
  // place of the next, because an exception ends a call without a word.
  uintptr_t call = 0;
};

inline constexpr uintptr_t kAlwaysInside = UINTPTR_MAX;
inline constexpr uint64_t kOnlyGeneration = 1;

// Before anything is recorded. False when the OS has no slot left that can be read so.
bool begin_thread_slots();

// Counted from the thread's environment block.
inline constinit uint32_t g_slot_offset = 0;

// What the OS's slot holds: nothing yet, a ThreadSlot, or of a thread that has ended its number, made odd.
inline uintptr_t thread_word() {
  uintptr_t word;
  asm volatile("movq %%gs:(%1), %0" : "=r"(word) : "r"(uint64_t{g_slot_offset}));
  return word;
}

inline bool is_slot(uintptr_t word) { return word != 0 && word % 2 == 0; }

// Of a thread without one: made. An ended thread's is nobody's.
ThreadSlot& other_thread_slot(uintptr_t word);

inline ThreadSlot& thread_slot() {
  const uintptr_t word = thread_word();
  return is_slot(word) ? *reinterpret_cast<ThreadSlot*>(word) : other_thread_slot(word);
}

// The thread has made its last call but for those that the system makes behind it.
void forget_thread_slot();

// One such call: `slot` is the thread's while it lasts.
void lend_thread_slot(ThreadSlot& slot);
void take_back_thread_slot(const ThreadSlot& slot);

inline Stream* current_stream() { return thread_slot().stream; }

}  // namespace recorder
