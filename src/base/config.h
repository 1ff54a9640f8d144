// The sizes that everything else is built on. Each relation between them is asserted where it is used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rh {

inline constexpr bool k64Bit = sizeof(void*) == 8;

// Every block is aligned to this and at least this large: max_align_t on all supported targets.
inline constexpr size_t kBlockAlign = 16;

// The realm is divided into units, each with one descriptor (arena/span.h). A slab of small blocks is one unit where
// possible: small slabs keep peak memory down (docs/design/slabs.md).
inline constexpr size_t kUnitShift = 14;
inline constexpr size_t kUnitSize = size_t{1} << kUnitShift;

// Largest block served from a slab; larger ones are spans of whole units.
inline constexpr size_t kMaxSmall = 32 * 1024;

// The hardened build: misuse of memory is looked for, and what remains is made hard to use (docs/design/hardened.md).
#if defined(RH_HARDENED)
inline constexpr bool kHardened = true;
#else
inline constexpr bool kHardened = false;
#endif

// So much of a slab, at its end, is kept inaccessible, where it ends at a place for that (arena/bars.h).
inline constexpr size_t kSlabGuard = kHardened ? 4096 : 0;

// Requests up to this size find their size class in a table, larger ones by arithmetic.
inline constexpr size_t kTableMax = 1024;

// No larger request can be met: differences between pointers must fit ptrdiff_t.
inline constexpr size_t kMaxRequest = SIZE_MAX / 2;

inline constexpr size_t kMaxAlignment = size_t{1} << 30;

// Whether the requested size of each block is recorded, beside its usable size: _msize and HeapSize must return it
// where they are served, and _recalloc zeroes from there (docs/design/sizes.md).
#if defined(RH_EXACT_SIZES) || defined(RH_HARDENED)
inline constexpr bool kExactSizes = true;
#else
inline constexpr bool kExactSizes = false;
#endif

}  // namespace rh
