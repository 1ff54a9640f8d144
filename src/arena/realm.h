// The realm: the address space that is ours alone, and its table of descriptors. Whether a pointer is ours is one
// subtraction and one comparison; its descriptor follows by arithmetic.
//
// 64-bit: one window of addresses, chosen where nobody else maps, taken piece by piece from its low end, its table
// beside it in a window of its own. Nothing is reserved before it is needed, so limits on address space and
// systems where reservations cost (Wine) are no special case. 32-bit: the table covers all 4 GiB, pieces lie
// where the OS puts them. docs/design/realm.md has the measurements.
#pragma once

#include "arena/span.h"
#include "base/bits.h"
#include "base/compiler.h"

namespace rh {

// Where the window lies and how large it may grow; to be set before first use.
struct Window {
  enum class Place { anywhere, low, image, address };
  uint64_t size = 0;  // 0: the default
  Place place = Place::anywhere;
  uint64_t address = 0;
};

// A table that runs parallel to the realm's memory, beginning where it does: reserved along with it, committed as used.
class SideTable {
 public:
  // Has address space up to `end` already, or none yet (end == start).
  void open(uintptr_t start, uintptr_t end);
  // Whether there is address space for the first `bytes` of it now, more only right behind what there is.
  bool reserve_to(size_t bytes);
  // Whether the first `bytes` of it are readable now.
  bool commit_to(size_t bytes);
  // Takes back what reserve_to got last.
  void unreserve(size_t to_bytes);
  // Another thread may have extended it without the caller's knowing: what lies behind is renewed, now and from now on.
  bool renew();
  void release();
  size_t reserved() const { return end_ - start_; }
  size_t committed() const { return frontier_ - start_; }

 private:
  uintptr_t start_ = 0, frontier_ = 0, end_ = 0;
  bool renews_ = false;
};

class RealmCopy;

class Realm {
 public:
  constexpr Realm() = default;

  // Whether `pointer` is ours.
  RH_INLINE bool holds(const void* pointer) const {
    return RH_LIKELY(address_of(pointer) - base_.load() < span_.load());
  }

  // The descriptor of the unit that `pointer`, one of ours, lies in.
  RH_INLINE Span* span_of(const void* pointer) const {
    return spans() + ((address_of(pointer) - base_.load()) >> kUnitShift);
  }

  // Whether `pointer`, which the realm holds, lies where memory was taken. Between pieces (on 32-bit) and where somebody
  // else had settled (on 64-bit) it does not. Takes longer the more stretches there are.
  bool covers(const void* pointer) const;

  // Keeps how many bytes were asked for of a block in a slab, for kExactSizes: out of line, two bytes for every 16 of
  // memory that begin a block. A block of the smallest class has but one.
  RH_INLINE void note_size(const void* block, size_t size, bool smallest) {
    uint8_t* note = note_of(block);
    if (smallest) {
      *note = static_cast<uint8_t>(size);
    } else {
      uint16_t value = static_cast<uint16_t>(size);
      __builtin_memcpy(note, &value, sizeof(value));
    }
  }

  RH_INLINE size_t noted_size(const void* block, bool smallest) const {
    const uint8_t* note = note_of(block);
    if (smallest) return *note;
    uint16_t value;
    __builtin_memcpy(&value, note, sizeof(value));
    return value;
  }

  // A block that is in nobody's hands has a size that no block can have.
  RH_INLINE void note_free(const void* block, bool smallest) {
    note_size(block, kFreeNote, smallest);
  }

  RH_INLINE bool is_noted_free(const void* block, bool smallest) const {
    return noted_size(block, smallest) == (smallest ? kFreeNote & 0xff : kFreeNote);
  }

  // The same for any pointer: null when it is not ours.
  Span* find(const void* pointer) const { return holds(pointer) ? span_of(pointer) : nullptr; }

  uintptr_t address(const Span* span) const {
    return base() + (static_cast<uintptr_t>(span - spans()) << kUnitShift);
  }

  // Whether `span` is a readable entry of the table. Adding to or subtracting from a valid entry is fine.
  bool contains(const Span* span) const {
    return span >= spans() && static_cast<size_t>(span - spans()) < count();
  }

  // Makes fresh memory usable: at least `least` units, up to `wanted`. It reads as zero and its descriptors are
  // all zero. Gives the first descriptor and sets `*got`, or null when the OS or the window has no more.
  Span* extend(Units least, Units wanted, Units* got);

  // Where pieces lie anywhere they go back one by one. How many there may be; one of them, if all of it is the arena's (else
  // null); and its end: nothing of it is in use, and its descriptors are of kind none.
  size_t pieces() const { return k64Bit ? 0 : stretch_count_.load(); }
  Span* piece(size_t index, Units* length) const;
  void release_piece(size_t index);

  // Gives back all address space, tables and all. Nothing of the realm may be used again.
  void release_all();

  // In a fork's child: the realm is as it was when the copy was taken. What was used behind its frontier since is lost.
  void go_back_to(const RealmCopy& copy);

  // False once memory has been taken: too late.
  bool set_window(const Window& window);

  // What was set, or became of it.
  const Window& window() const { return wanted_; }

  // Address space at hand that needs no reservation; where pieces do not follow each other, take it before
  // asking for more than it holds.
  Units room() const { return Units{(reserved_end_ - frontier_) >> kUnitShift}; }

  uintptr_t base() const { return base_.load(); }
  // Where the first memory taken lies; 0 before that.
  uintptr_t first_address() const { return stretches_[0].start.load(); }

  uint64_t window_size() const { return window_end_ - base(); }
  size_t reserved() const { return reserved_; }
  size_t committed() const { return committed_; }
  // What the descriptors and the notes take.
  size_t side_tables() const {
    return table_.committed() + notes_.committed() + piece_notes_bytes_;
  }

  // All descriptors that may be in use, in address order.
  Span* first() const { return spans(); }
  size_t count() const { return span_.load() >> kUnitShift; }

 private:
  struct Stretch {
    Word<uintptr_t> start, end;
  };

  bool open();
  bool open_anywhere();
  bool open_sparse();
  bool open_whole(uintptr_t size);
  bool open_at(uintptr_t base, uintptr_t size);
  bool open_window();
  bool reserve_more(size_t least);
  bool reserve_piece(size_t size);
  void set_tables(uintptr_t table, uintptr_t table_end, uintptr_t notes, uintptr_t notes_end);
  bool make_notes(uintptr_t start, size_t size);
  void release_piece_notes();
  void release_notes_of(uintptr_t start, uintptr_t end);
  Stretch* stretch_for(uintptr_t start, uintptr_t end);
  bool reserve_tables_to(uintptr_t end);
  bool commit_tables_to(uintptr_t end);
  bool may_take(uintptr_t start, uintptr_t size) {
    return stretch_for(start, start + size) != nullptr;
  }
  void note_taken(uintptr_t start, uintptr_t size);
  size_t commit_some(size_t least, size_t wanted);

  Span* spans() const { return spans_.load(); }

  static constexpr size_t kFreeNote = 0xffff;
  static_assert(kMaxSmall < kFreeNote && kBlockAlign < (kFreeNote & 0xff));
  static constexpr unsigned kNoteShift = highest_bit(kBlockAlign);  // a byte for each of these
  RH_INLINE uint8_t* note_of(const void* block) const {
    if constexpr (k64Bit) return notes_at_.load() + (address_of(block) >> kNoteShift);
    return piece_notes_[address_of(block) / kPieceAlign].load() +
           (address_of(block) % kPieceAlign >> kNoteShift);
  }

  // What free() reads, together in one cache line. Only span_ changes after the first block was handed out, and
  // a thread that holds a block has seen a span_ that covers it.
  Word<uintptr_t> base_;
  Word<uintptr_t> span_;  // bytes from base_ for which the table is readable
  Word<Span*> spans_;
  Word<uint8_t*> notes_at_;  // 64-bit: where the note of address 0 would be

  uintptr_t frontier_ = 0;      // memory below is committed
  uintptr_t reserved_end_ = 0;  // memory from frontier_ to here is reserved
  uint64_t window_end_ = 0;
  SideTable table_, notes_;
  bool opened_ = false;
  bool whole_ = false;  // the window is reserved in one piece already
  Window wanted_;
  size_t reserved_ = 0;
  size_t committed_ = 0;

  // Address space reserved for blocks. 64-bit: pieces that follow each other are one; ends change, entries are never
  // removed. 32-bit: each is one piece; one that was given back leaves an empty entry.
  static constexpr size_t kMostStretches = k64Bit ? 256 : 1024;
  Stretch stretches_[kMostStretches];
  Word<size_t> stretch_count_;

  // 32-bit, where pieces lie anywhere: each brings its notes along.
  static constexpr size_t kPieceAlign = size_t{1} << 20;
  static constexpr size_t kPieces = !k64Bit && kExactSizes ? size_t{4096} : 1;
  Word<uint8_t*> piece_notes_[kPieces];
  size_t piece_notes_bytes_ = 0;
};

extern constinit Realm g_realm;

// Every descriptor there is, whatever it speaks for.
template <typename Visit>
void for_each_span(Visit visit) {
  Span* end = g_realm.first() + g_realm.count();
  for (Span* span = g_realm.first(); span < end; ++span) visit(span);
}

// The realm's books at one moment; the caller holds the arena's lock.
class RealmCopy {
 public:
  void take() { __builtin_memcpy(bytes_, static_cast<const void*>(&g_realm), sizeof(bytes_)); }

 private:
  friend class Realm;
  alignas(Realm) unsigned char bytes_[sizeof(Realm)];
};

}  // namespace rh
