// Whether reheap is in this process, and which layers it serves.
#pragma once

#include <windows.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "reheap/reheap.h"

namespace heap_stress {

// reheap.dll, whatever it is called beside that of another processor; NULL where it is not loaded.
inline HMODULE reheap_library() {
  HMODULE library = nullptr;
  for (const char* name : {"reheap.dll", "reheap32.dll", "reheap64.dll"})
    if (!library) library = GetModuleHandleA(name);
  return library;
}

// A function of its; NULL without it.
template <class Function> Function* function_of_reheap(const char* name) {
  const HMODULE library = reheap_library();
  if (!library) return nullptr;
  return reinterpret_cast<Function*>(reinterpret_cast<void*>(GetProcAddress(library, name)));
}

inline bool is_of_reheap(const void* block) {
  const auto owns = function_of_reheap<decltype(rh_owns)>("rh_owns");
  return owns && owns(block);
}

// Bytes in blocks that reheap has handed out, what its threads hold ready included; 0 without it.
inline std::size_t in_use_of_reheap() {
  const auto get = function_of_reheap<decltype(rh_stats_get)>("rh_stats_get");
  rh_stats stats = {};
  stats.struct_size = sizeof stats;
  return get && get(&stats) ? stats.in_use : 0;
}

// A block of the process heap and one of a private heap.
inline bool serves_heaps() {
  const HANDLE heap = HeapCreate(0, 0, 0);
  void* const ours = HeapAlloc(GetProcessHeap(), 0, 100);
  void* const other = HeapAlloc(heap, 0, 100);
  const bool process_heap = is_of_reheap(ours);
  const bool private_heap = is_of_reheap(other);
  HeapFree(GetProcessHeap(), 0, ours);
  HeapDestroy(heap);
  if (process_heap != private_heap) std::fprintf(stderr, "one kind of heap is served, the other is not\n");
  return process_heap && private_heap;
}

inline bool serves_malloc() {
  void* const block = malloc(100);
  const bool ours = is_of_reheap(block);
  free(block);
  return ours;
}

// `expected` is the value of REHEAP_LAYERS, or "plain". A C runtime may be served by way of the heap it allocates from.
inline bool is_injected_as(const char* expected) {
  const bool both = std::strcmp(expected, "both") == 0;
  const bool heaps = both || std::strcmp(expected, "heap") == 0;
  const bool crt = both || std::strcmp(expected, "crt") == 0;
  const bool here = reheap_library() != nullptr;
  const bool as_expected = here == (heaps || crt) && serves_heaps() == heaps && (heaps || serves_malloc() == crt) &&
                           (!crt || serves_malloc());
  if (!as_expected)
    std::fprintf(stderr, "expected %s: reheap.dll is %sloaded, HeapAlloc is %s, malloc is %s\n", expected,
                 here ? "" : "not ", serves_heaps() ? "reheap's" : "the system's",
                 serves_malloc() ? "reheap's" : "the system's");
  return as_expected;
}

}  // namespace heap_stress
