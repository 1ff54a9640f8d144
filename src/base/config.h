// The sizes everything else is built on. Each relation between them is asserted where it is used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rh {

inline constexpr bool k64Bit = sizeof(void*) == 8;

// Every block is aligned to this and at least this large: max_align_t on all supported targets.
inline constexpr size_t kBlockAlign = 16;

// The realm is cut into units; one descriptor (arena/span.h) stands for each. A slab of small blocks
// is one unit where it can be: small slabs keep peak memory down (docs/design/slabs.md).
inline constexpr size_t kUnitShift = 14;
inline constexpr size_t kUnitSize = size_t{1} << kUnitShift;

// Largest block served from a slab; larger ones are spans of whole units.
inline constexpr size_t kMaxSmall = 32 * 1024;

// Requests up to this find their size class in a table, the others by arithmetic.
inline constexpr size_t kTableMax = 1024;

// No request above this can be met: differences between pointers must fit ptrdiff_t.
inline constexpr size_t kMaxRequest = SIZE_MAX / 2;

inline constexpr size_t kMaxAlignment = size_t{1} << 30;

// Whether the size asked for is kept for each block, beside the one it got: where _msize and HeapSize are served they
// must return it, and _recalloc zeroes from there (docs/design/sizes.md).
#if defined(RH_EXACT_SIZES)
inline constexpr bool kExactSizes = true;
#else
inline constexpr bool kExactSizes = false;
#endif

}  // namespace rh
