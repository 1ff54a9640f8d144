// How many bytes were asked for of each block in a slab, where that is kept (kExactSizes): out of line, a byte for each
// kBlockAlign of memory, of which a block uses the first two. One of the smallest class has but one.
#pragma once

#include <type_traits>

#include "arena/side_table.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/config.h"
#include "base/word.h"

namespace rh {

inline constexpr unsigned kNoteShift = highest_bit(kBlockAlign);

// 64-bit: one table, parallel to the window.
class WindowNotes {
 public:
  RH_INLINE uint8_t* of(const void* block) const { return of_null_.load() + (address_of(block) >> kNoteShift); }

  // Of the memory from `base` on; there is address space from `start` to `end`.
  void open(uintptr_t base, uintptr_t start, uintptr_t end) {
    of_null_.store(reinterpret_cast<uint8_t*>(start - (base >> kNoteShift)));
    table_.open(start, end);
  }
  void release(uintptr_t, uintptr_t) {}  // no piece goes back by itself
  void release_all() { table_.release(); }
  SideTable& table() { return table_; }

 private:
  Word<uint8_t*> of_null_;  // where the note of address 0 would be
  SideTable table_;
};

// 32-bit, where pieces lie anywhere: each brings its notes along, committed whole, for a piece is small.
class PieceNotes {
 public:
  static constexpr size_t kPieceAlign = size_t{1} << 20;

  RH_INLINE uint8_t* of(const void* block) const {
    return pieces_[address_of(block) / kPieceAlign].load() + (address_of(block) % kPieceAlign >> kNoteShift);
  }

  // Of the piece [start, end), at multiples of kPieceAlign.
  bool make(uintptr_t start, uintptr_t end);
  void release(uintptr_t start, uintptr_t end);
  void release_all();
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kPieces = kExactSizes ? 4096 : 1;
  Word<uint8_t*> pieces_[kPieces];
  size_t bytes_ = 0;
};

class Sizes : public std::conditional_t<k64Bit, WindowNotes, PieceNotes> {
 public:
  RH_INLINE void note(const void* block, size_t size, bool smallest) { note_at(of(block), size, smallest); }
  RH_INLINE size_t noted(const void* block, bool smallest) const { return noted_at(of(block), smallest); }

  // The same of a note that has been looked up.
  RH_INLINE static void note_at(uint8_t* note, size_t size, bool smallest) {
    if (RH_UNLIKELY(smallest)) {
      *note = static_cast<uint8_t>(size);
    } else {
      uint16_t value = static_cast<uint16_t>(size);
      __builtin_memcpy(note, &value, sizeof(value));
    }
  }

  RH_INLINE static size_t noted_at(const uint8_t* note, bool smallest) {
    if (RH_UNLIKELY(smallest)) return *note;
    uint16_t value;
    __builtin_memcpy(&value, note, sizeof(value));
    return value;
  }

  // A block that is in nobody's hands has a size that no block can have: one if it was in somebody's, where `tag` is
  // that of its memory then (platform/memory_tags.h), another if not.
  static constexpr unsigned kUnknownTag = 15;
  RH_INLINE void note_free(const void* block, bool smallest, unsigned tag = kUnknownTag) {
    note_free_at(of(block), smallest, tag);
  }
  RH_INLINE static void note_free_at(uint8_t* note, bool smallest, unsigned tag) {
    note_at(note, kFree + tag, smallest);
  }
  RH_INLINE void note_fresh(const void* block, bool smallest) { note(block, kFresh, smallest); }

  RH_INLINE bool is_noted_free(const void* block, bool smallest) const {
    return noted(block, smallest) >= (smallest ? kFresh & 0xff : kFresh);
  }
  RH_INLINE bool is_noted_fresh(const void* block, bool smallest) const {
    return noted(block, smallest) == (smallest ? kFresh & 0xff : kFresh);
  }

  // Of a block that is noted as free.
  RH_INLINE unsigned last_tag(const void* block, bool smallest) const { return noted(block, smallest) & kUnknownTag; }

 private:
  static constexpr size_t kFree = 0xfff0, kFresh = 0xffef;
  static_assert(kFresh == kFree - 1 && (kFresh & kUnknownTag) == kUnknownTag);
  static_assert(kMaxSmall < kFresh && kBlockAlign < (kFresh & 0xff));
};

}  // namespace rh
