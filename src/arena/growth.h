// In what steps the realm takes address space, and what the tables beside it take.
#pragma once

#include "arena/span.h"
#include "base/bits.h"
#include "base/config.h"
#include "platform/platform.h"

namespace rh {

// Pieces are a multiple of this: their descriptors can be reserved by themselves.
inline constexpr size_t kTableOfMiB = (kMiB >> kUnitShift) * sizeof(Span);
inline constexpr size_t kPieceGrain = k64Bit ? kMiB * divide_up(platform::kReserveGrain, kTableOfMiB) : kMiB;
static_assert(!k64Bit || (kPieceGrain >> kUnitShift) * sizeof(Span) % platform::kReserveGrain == 0,
              "the table of a piece is a reservation");
static_assert(kPieceGrain / kBlockAlign % platform::kReserveGrain == 0, "and so are its notes");

// What is reserved counts where a program locks all its memory (mlockall), and that may be little. So it begins with
// little where that costs no more than a call.
inline constexpr size_t kFirstPiece = !k64Bit ? 4 * kMiB : kPieceGrain > kMiB ? 64 * kMiB : 2 * kMiB;
inline constexpr size_t kStride = 64 * kMiB;
inline constexpr size_t kLargestPiece = k64Bit ? 1024 * kMiB : 16 * kMiB;

constexpr size_t table_bytes(uintptr_t heap_bytes) {
  return align_up((heap_bytes >> kUnitShift) * sizeof(Span), platform::kPageSize);
}

constexpr size_t note_bytes(uintptr_t heap_bytes) {
  return kExactSizes ? align_up(heap_bytes / kBlockAlign, platform::kPageSize) : 0;
}

}  // namespace rh
