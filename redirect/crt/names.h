// What can be replaced in a C runtime (runtimes.h), as data: its exports that allocate, and which of these belong
// together.
//
// All names of one role do the same; `_x_base` is what newer runtimes call x by inside. Roles of the families
// base, aligned and debug are replaced together or not at all: the runtime's own `_aligned_free` reads the block's
// maker from before it and calls free, `_aligned_realloc` asks the heap about it directly, and a debug runtime expects
// its own header before every block.
//
// Left as they are, on purpose:
// - `_o_malloc` and the other `_o_` twins, which the system's own DLLs call: they set the state of the system's part of
//   the runtime (an errno and handlers of its own), and then call the plain functions, which are ours.
// - `_heapchk`, `_heapwalk`, `_get_heap_handle`, `_heapset`, `_heapadd`: they speak of the runtime's own heap, which
//   still holds the blocks made before we came, and they stay right about it. reheap's blocks are not listed by
//   `_heapwalk`.
// - `_strdup`, `_wcsdup`, `_fullpath`, `_getcwd`, `_dupenv_s`, `_tempnam` and all others whose result is to be freed:
//   they call malloc at its entry. One that would not hands out a foreign block, which goes back to the runtime.
// - placement new, and new-handler and new-mode functions: reheap asks them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rh::redirect {

enum class Family : uint8_t { base, aligned, debug, heap, operators, count };

enum class Role : uint8_t {
  malloc,
  calloc,
  realloc,
  free,
  recalloc,
  msize,
  expand,

  aligned_malloc,
  aligned_free,
  aligned_realloc,
  aligned_recalloc,
  aligned_msize,
  aligned_offset_malloc,
  aligned_offset_realloc,
  aligned_offset_recalloc,

  malloc_dbg,
  calloc_dbg,
  realloc_dbg,
  free_dbg,
  recalloc_dbg,
  msize_dbg,
  expand_dbg,
  aligned_malloc_dbg,
  aligned_free_dbg,
  aligned_realloc_dbg,
  aligned_recalloc_dbg,
  aligned_msize_dbg,
  aligned_offset_malloc_dbg,
  aligned_offset_realloc_dbg,
  aligned_offset_recalloc_dbg,
  is_valid_heap_pointer,

  heapmin,

  operator_new,
  operator_new_nothrow,
  operator_new_debug,
  operator_delete,

  count
};

inline constexpr size_t kFamilies = static_cast<size_t>(Family::count);
inline constexpr size_t kRoles = static_cast<size_t>(Role::count);

Family family_of(Role role);
const char* name_of(Family family);

// Whether the family is replaced only if others of its kind can be as well.
bool stands_together(Family family);

struct Export {
  const char* name;
  Role role;
  bool inmost_twin;  // `_x_base`: below a debug runtime's headers
};

const Export* exports_begin();
const Export* exports_end();

}  // namespace rh::redirect
