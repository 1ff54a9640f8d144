// Tags of memory, which 64-bit ARM may have: four bits for each sixteen bytes, kept beside them. A pointer has four
// as well, in its highest byte, and where the two differ the processor refuses the access. (Arm: Memory Tagging
// Extension; Linux: Documentation/arm64/memory-tagging-extension.rst.) Memory nobody tagged has tag 0.
//
// Elsewhere nothing here is more than a constant, and the compiler drops it.
#pragma once

#include "base/bits.h"
#include "base/compiler.h"

namespace rh::platform {

#if defined(__aarch64__) && defined(__linux__) && defined(RH_HARDENED) && !defined(RH_FAKE_PLATFORM)
inline constexpr bool kHasTags = true;
#else
inline constexpr bool kHasTags = false;
#endif

// How a wrong access is told: by SIGSEGV at the access, or at the thread's next call of the kernel, which costs less.
enum class TagChecks : uint8_t { off, sync, async };

// To be called once, by a process's only thread, before memory is committed: what is committed from then on has tags.
// Nothing happens where processor or kernel have none, or other threads are there already, whose accesses nobody would
// check. What the program has said about it before stays in force.
void begin_tags(TagChecks checks);

#if defined(__aarch64__) && defined(__linux__) && defined(RH_HARDENED) && !defined(RH_FAKE_PLATFORM)

RH_HIDDEN extern constinit bool g_has_tags;

inline constexpr size_t kTagGrain = 16;
inline constexpr unsigned kTagShift = 56, kTagMask = 15;

RH_INLINE bool has_tags() { return g_has_tags; }

RH_INLINE unsigned tag_of(const void* pointer) {
  return static_cast<unsigned>(address_of(pointer) >> kTagShift) & kTagMask;
}

// The pointer with another tag.
RH_INLINE void* with_tag(const void* pointer, unsigned tag) {
  uintptr_t plain = address_of(pointer) & ~(uintptr_t{kTagMask} << kTagShift);
  return reinterpret_cast<void*>(plain | uintptr_t{tag} << kTagShift);
}

// The tag of the memory there, which is committed.
RH_INLINE unsigned stored_tag(const void* at) {
  uintptr_t result = address_of(at);
  asm volatile(".arch_extension memtag\n ldg %0, [%0]" : "+r"(result) : : "memory");
  return tag_of(reinterpret_cast<void*>(result));
}

// Gives memory a tag. Both numbers are multiples of kTagGrain.
RH_INLINE void store_tag(const void* start, size_t size, unsigned tag) {
  uintptr_t at = address_of(with_tag(start, tag)), end = at + size;
  if (size % (2 * kTagGrain) != 0) {
    asm volatile(".arch_extension memtag\n stg %0, [%0]" : : "r"(at) : "memory");
    at += kTagGrain;
  }
  for (; at != end; at += 2 * kTagGrain) asm volatile(".arch_extension memtag\n st2g %0, [%0]" : : "r"(at) : "memory");
}

// A tag by lot, none of those whose bit is set in `excluded`; 0 where no other is left.
RH_INLINE unsigned random_tag(uint64_t excluded) {
  uintptr_t result = 0;
  asm volatile(".arch_extension memtag\n irg %0, %0, %1" : "+r"(result) : "r"(excluded | 1));
  return tag_of(reinterpret_cast<void*>(result));
}

// While there is one, this thread's accesses are not checked.
class Unchecked {
 public:
  RH_INLINE Unchecked() {
    if (!has_tags()) return;
    asm volatile(".arch_extension memtag\n mrs %0, tco\n msr tco, #1" : "=r"(before_) : : "memory");
  }
  RH_INLINE ~Unchecked() {
    if (has_tags()) asm volatile(".arch_extension memtag\n msr tco, %0" : : "r"(before_) : "memory");
  }
  Unchecked(const Unchecked&) = delete;
  Unchecked& operator=(const Unchecked&) = delete;

 private:
  uint64_t before_ = 0;
};

#else

constexpr bool has_tags() { return false; }
constexpr unsigned tag_of(const void*) { return 0; }
constexpr void* with_tag(const void* pointer, unsigned) { return const_cast<void*>(pointer); }
constexpr unsigned stored_tag(const void*) { return 0; }
constexpr void store_tag(const void*, size_t, unsigned) {}
constexpr unsigned random_tag(uint64_t) { return 0; }
inline constexpr size_t kTagGrain = 16;

class Unchecked {
 public:
  constexpr Unchecked() {}
  ~Unchecked() {}
};

#endif

}  // namespace rh::platform
