// One word per thread: the pointer to its heap. Reading it is the first step of every malloc and free, so this part of
// the contract is inline.
//
//   thread_word       the value set. Before that null or, where the system lets us choose, g_unset: zeros, so that the
//                     fast paths need no test. Sometimes reads as unset where thread_word_slow knows the value.
//   thread_word_slow  the value set, null before that
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/compiler.h"

namespace rh::platform {

// How far what is found of a heap may be read before there is one.
inline constexpr size_t kUnsetBytes = 1024;

#if defined(_WIN32)

// A TlsAlloc slot, read directly from the thread environment block: no compiler's thread-local storage is as short,
// works without the loader and in threads older than this library (GCC's for Windows even allocates). Until a slot is
// allocated, and where only one past the first 64 was available, this is the offset of a word that is always null, and
// thread_word_slow() knows better.
extern constinit uintptr_t g_thread_word_at;

inline constexpr bool kUnsetIsNull = true;

RH_INLINE void* thread_word() {
  void* word;
#if defined(__x86_64__) && !defined(__arm64ec__)
  asm volatile("movq %%gs:(%1), %0" : "=r"(word) : "r"(g_thread_word_at));
#elif defined(__i386__)
  asm volatile("movl %%fs:(%1), %0" : "=r"(word) : "r"(g_thread_word_at));
#elif defined(__aarch64__) || defined(__arm64ec__)
  asm volatile("ldr %0, [x18, %1]" : "=r"(word) : "r"(g_thread_word_at));
#else
#error "where does this processor keep the thread environment block?"
#endif
  return word;
}

void* thread_word_slow();
void set_thread_word(void* word);

// Whether thread_word finds what set_thread_word sets, and setting it allocates nothing; known once a word has been
// set.
bool thread_words_are_near();

// Frees the slot; no thread may be inside the library.
void forget_thread_words();

#else

inline constexpr bool kUnsetIsNull = false;
extern const unsigned char g_unset[kUnsetBytes];

// Null while the program is being relocated and thread-local storage is not set up yet: the resolver of an ifunc may
// allocate.
extern constinit thread_local const void* t_word;

RH_INLINE void* thread_word() { return const_cast<void*>(t_word); }
inline void* thread_word_slow() { return t_word == g_unset ? nullptr : thread_word(); }
inline void set_thread_word(void* word) { t_word = word != nullptr ? word : g_unset; }

#endif

}  // namespace rh::platform
