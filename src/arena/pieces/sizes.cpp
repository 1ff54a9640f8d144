#include "arena/sizes.h"

#include "arena/growth.h"
#include "platform/platform.h"

namespace rh {

static size_t bytes_for(uintptr_t start, uintptr_t end) {
  return align_up(note_bytes(end - start), platform::kReserveGrain);
}

bool PieceNotes::make(uintptr_t start, uintptr_t end) {
  if constexpr (!kExactSizes) return true;
  size_t bytes = bytes_for(start, end);
  uintptr_t notes = platform::reserve(bytes, platform::kPageSize);
  if (notes == 0) return false;
  if (!platform::commit(notes, bytes)) {
    platform::release(notes, bytes);
    return false;
  }
  for (uintptr_t at = start; at != end; at += kPieceAlign)
    pieces_[at / kPieceAlign].store(reinterpret_cast<uint8_t*>(notes + ((at - start) >> kNoteShift)));
  bytes_ += bytes;
  return true;
}

void PieceNotes::release(uintptr_t start, uintptr_t end) {
  if constexpr (!kExactSizes) return;
  size_t bytes = bytes_for(start, end);
  uintptr_t notes = address_of(pieces_[start / kPieceAlign].load());
  for (uintptr_t at = start; at != end; at += kPieceAlign) pieces_[at / kPieceAlign].store(nullptr);
  bytes_ -= bytes;
  platform::release(notes, bytes);
}

// Notes of pieces that follow each other are given back as one.
void PieceNotes::release_all() {
  constexpr size_t kStep = kPieceAlign >> kNoteShift;
  for (size_t index = 0; index < kPieces;) {
    uintptr_t start = address_of(pieces_[index++].load());
    if (start == 0) continue;
    uintptr_t end = start + kStep;
    for (; index < kPieces && address_of(pieces_[index].load()) == end; ++index) end += kStep;
    platform::release(start, end - start);
  }
}

}  // namespace rh
