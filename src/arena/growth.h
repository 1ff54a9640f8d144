// In what steps the realm takes address space, and what the tables beside it take.
#pragma once

#include "arena/span.h"
#include "base/bits.h"
#include "base/config.h"
#include "platform/platform.h"

namespace rh {

// Pieces are a multiple of this: their descriptors can be reserved by themselves.
inline size_t piece_grain() { return k64Bit ? kMiB * (platform::reserve_grain() / platform::kPageSize) : kMiB; }
static_assert(!k64Bit || (kMiB >> kUnitShift) * sizeof(Span) == platform::kPageSize,
              "the table of a piece is a reservation");
static_assert(kMiB / kBlockAlign % platform::kReserveGrain == 0 && kMiB / kBlockAlign % platform::kMostPageSize == 0,
              "and so are its notes");

// Memory is committed in multiples of this: of units, and of pages, whichever are longer.
inline size_t commit_grain() { return platform::page_size() > kUnitSize ? platform::page_size() : kUnitSize; }
inline Units units_of_page() { return {commit_grain() >> kUnitShift}; }

// What is reserved counts where a program locks all its memory (mlockall), and that may be little. So it begins with
// little where that costs no more than a call.
inline constexpr bool kReservesLittle = platform::kReserveGrain == platform::kPageSize;
inline constexpr size_t kFirstPiece = !k64Bit ? 4 * kMiB : kReservesLittle ? 2 * kMiB : 64 * kMiB;
inline constexpr size_t kStride = 64 * kMiB;
inline constexpr size_t kLargestPiece = k64Bit ? 1024 * kMiB : 16 * kMiB;

constexpr size_t table_bytes(uintptr_t heap_bytes, size_t page = platform::page_size()) {
  return align_up((heap_bytes >> kUnitShift) * sizeof(Span), page);
}

constexpr size_t note_bytes(uintptr_t heap_bytes, size_t page = platform::page_size()) {
  return kExactSizes ? align_up(heap_bytes / kBlockAlign, page) : 0;
}

}  // namespace rh
