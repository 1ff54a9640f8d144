// Operators new and delete that the program defines itself. The standard says which other forms call those: a program
// that replaces `operator delete(void*)` alone expects every `delete` with a size there, and blocks of its `operator
// new(size_t)` from every `new (std::nothrow)`. So each form of ours that by default calls another one looks whether
// that is ours too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "base/compiler.h"
#include "base/word.h"

namespace rh::operators {

// Those that others are made of.
enum class Root : uint8_t {
  make,
  make_array,
  make_aligned,
  make_array_aligned,
  free,
  free_array,
  free_aligned,
  free_array_aligned,
  count
};
inline constexpr unsigned kRoots = static_cast<unsigned>(Root::count);

using Make = void*(size_t);
using MakeAligned = void*(size_t, std::align_val_t);
using Free = void(void*);
using FreeAligned = void(void*, std::align_val_t);

#if defined(__ELF__)

// By their names as the linker knows them, and where ours are.
struct OurRoot {
  const char* name;
  void* function;
};
RH_HIDDEN extern const OurRoot kOurRoots[kRoots];

// Those that this process calls by these names: ours, or others; null where there is none. Each kind of library has its
// own way to tell.
struct RootsInUse {
  void* functions[kRoots];
};
RootsInUse roots_in_use();

RH_HIDDEN extern constinit Word<bool> g_roots_are_ours;  // false until that was looked at
RH_INLINE bool roots_are_ours() { return g_roots_are_ours.load(); }

// What stands in the place of ours; null where ours does. May be called by any thread, at any time that the standard
// allows to call the operators.
RH_COLD void* find_replaced(Root root);

// Null where the program's throws.
void* call_quietly(Make* theirs, size_t size) noexcept;
void* call_quietly(MakeAligned* theirs, size_t size, std::align_val_t alignment) noexcept;

#else

// On Windows the linker chooses, and what it took for a module serves all of that.
constexpr bool roots_are_ours() { return true; }
inline void* find_replaced(Root) { return nullptr; }
inline void* call_quietly(Make*, size_t) { return nullptr; }
inline void* call_quietly(MakeAligned*, size_t, std::align_val_t) { return nullptr; }

#endif

template <typename Function, typename Theirs, typename Ours>
RH_COLD auto ask_roots(Root root, Root otherwise, Theirs by_theirs, Ours by_ours) {
  void* theirs = find_replaced(root);
  if (theirs == nullptr) theirs = find_replaced(otherwise);
  if (theirs == nullptr) return by_ours();
  return by_theirs(reinterpret_cast<Function*>(theirs));
}

// What the program has in the place of `root`, else of `otherwise`, does it; else ours does.
template <typename Function, typename Theirs, typename Ours>
RH_INLINE auto by_root(Root root, Root otherwise, Theirs by_theirs, Ours by_ours) {
  if (RH_LIKELY(roots_are_ours())) return by_ours();
  return ask_roots<Function>(root, otherwise, by_theirs, by_ours);
}

}  // namespace rh::operators
