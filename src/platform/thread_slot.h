// One word per thread: the pointer to its heap. Reading it is the first step of every malloc and free, so this part of
// the contract is inline.
//
//   thread_word        the value set. Before that null or, where the system lets us choose, the address of g_unset, so
//                      that the fast paths need no test. Sometimes reads as unset where thread_word_slow knows the
//                      value.
//   go_to_thread_word  turns the address of g_unset into it. Where the system lets us choose, this is never null: not
//                      even before thread-local storage is set up.
//   thread_word_slow   the value set, null before that
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/compiler.h"

namespace rh::platform {

// What the word of a thread leads to that has set none; whoever says what the words mean defines it.
struct Unset;
RH_HIDDEN extern Unset g_unset;

#if defined(_WIN32) || defined(__APPLE__)

// A word that the system gave us, a TlsAlloc slot or a pthread key, read directly: no compiler's thread-local storage
// is as short, works without the loader and in threads older than this library, and allocates nothing at first use
// (GCC's for Windows does, and Darwin's). This says how far it lies from where the system keeps what is the thread's.
// Until there is one, and where it cannot be read so, that is the place of a word that is always null, and
// thread_word_slow() knows better.
RH_HIDDEN extern constinit uintptr_t g_thread_word_at;

inline constexpr bool kUnsetIsNull = true;

RH_INLINE void* thread_word() {
  void* word;
#if defined(__APPLE__) && defined(__aarch64__)
  uintptr_t start;
  asm("mrs %0, tpidrro_el0" : "=r"(start));  // its last bits are the processor's number in older systems
  asm volatile("ldr %0, [%1, %2]" : "=r"(word) : "r"(start & ~uintptr_t{7}), "r"(g_thread_word_at));
#elif defined(__x86_64__) && !defined(__arm64ec__)
  asm volatile("movq %%gs:(%1), %0" : "=r"(word) : "r"(g_thread_word_at));
#elif defined(__i386__)
  asm volatile("movl %%fs:(%1), %0" : "=r"(word) : "r"(g_thread_word_at));
#elif defined(__aarch64__) || defined(__arm64ec__)
  asm volatile("ldr %0, [x18, %1]" : "=r"(word) : "r"(g_thread_word_at));
#else
#error "where does this processor keep what is the thread's?"
#endif
  return word;
}

RH_INLINE uintptr_t unset_address() { return reinterpret_cast<uintptr_t>(&g_unset); }
RH_INLINE void go_to_thread_word(uintptr_t& unset) { unset = reinterpret_cast<uintptr_t>(thread_word()); }

void* thread_word_slow();
void set_thread_word(void* word);

// Whether thread_word finds what set_thread_word sets, and setting it allocates nothing; known once a word has been
// set.
bool thread_words_are_near();

// Frees the slot; no thread may be inside the library.
void forget_thread_words();

#else

inline constexpr bool kUnsetIsNull = false;

// All zero while the program is being relocated and thread-local storage is not set up yet: the resolver of an ifunc
// may allocate.
struct ThreadSlot {
  const void* word;
  uintptr_t distance;  // from g_unset to the word
};
RH_HIDDEN extern constinit RH_THREAD_LOCAL ThreadSlot t_slot;

RH_INLINE void* thread_word() { return const_cast<void*>(t_slot.word); }

// Keeps a value in a register, and not in the one that functions return: GCC derives it anew otherwise, and moves
// malloc's result, which costs two instructions.
RH_INLINE void keep(uintptr_t& value) {
#if defined(__x86_64__) || defined(__i386__)
  asm("" : "+d"(value));
#else
  asm("" : "+r"(value));
#endif
}

RH_INLINE uintptr_t unset_address() {
  uintptr_t address = reinterpret_cast<uintptr_t>(&g_unset);
  keep(address);
  return address;
}

RH_INLINE void go_to_thread_word(uintptr_t& unset) {
  unset += t_slot.distance;
  keep(unset);
}

inline void* thread_word_slow() { return t_slot.word == &g_unset ? nullptr : thread_word(); }

inline void set_thread_word(void* word) {
  const void* set = word != nullptr ? word : &g_unset;
  t_slot.word = set;
  t_slot.distance = reinterpret_cast<uintptr_t>(set) - reinterpret_cast<uintptr_t>(&g_unset);
}

#endif

}  // namespace rh::platform
