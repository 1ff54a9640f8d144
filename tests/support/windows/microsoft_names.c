/* What a program of GCC's asks the C runtime for, and a library made for the ABI of Microsoft's compiler does not have:
 * names reached through pointers. */
#define ALSO_IMPORTED(name)             \
  extern char rh_##name __asm__(#name); \
  const void* const rh_imported_##name __asm__("__imp_" #name) = &rh_##name;

ALSO_IMPORTED(malloc)
ALSO_IMPORTED(calloc)
ALSO_IMPORTED(realloc)
ALSO_IMPORTED(free)
ALSO_IMPORTED(_msize)
ALSO_IMPORTED(_expand)
ALSO_IMPORTED(_recalloc)
ALSO_IMPORTED(_aligned_malloc)
ALSO_IMPORTED(_aligned_realloc)
ALSO_IMPORTED(_aligned_recalloc)
ALSO_IMPORTED(_aligned_offset_malloc)
ALSO_IMPORTED(_aligned_offset_realloc)
ALSO_IMPORTED(_aligned_offset_recalloc)
ALSO_IMPORTED(_aligned_msize)
ALSO_IMPORTED(_aligned_free)
