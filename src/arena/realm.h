// The realm: the address space that is ours alone, and its table of descriptors. Whether a pointer is ours is one
// subtraction and one comparison; its descriptor follows by arithmetic.
//
// 64-bit (arena/window/): one window of addresses, chosen where nobody else maps, taken piece by piece from its low
// end, its table beside it in a window of its own. Nothing is reserved before it is needed, so limits on address space
// and systems where reservations cost (Wine) are no special case. 32-bit (arena/pieces/): the table covers all 4 GiB,
// pieces lie where the OS puts them. docs/design/realm.md has the measurements.
#pragma once

#include "arena/side_table.h"
#include "arena/sizes.h"
#include "arena/span.h"
#include "arena/stretches.h"
#include "arena/window.h"
#include "base/bits.h"
#include "base/compiler.h"

namespace rh {

class RealmCopy;
struct Layout;

// Which memory is to lie in huge pages of the system's, where it has them. `dense`: that of slabs of small
// blocks in a heap that has grown large (docs/design/realm.md).
enum class HugePages : uint8_t { none, dense, all };

// How much of fresh memory may be resident: no more than is used, where there is a limit; or more. `dense`: all of it
// is about to be touched.
enum class Fresh : uint8_t { limited, usual, dense };

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

  // Whether `pointer`, which the realm holds, lies where memory was taken. Between pieces (on 32-bit) and where
  // somebody else had settled (on 64-bit) it does not. Takes longer the more stretches there are.
  bool covers(const void* pointer) const { return stretches_.cover(address_of(pointer)); }

  // Whether any of it does.
  bool overlaps(uintptr_t start, uintptr_t end) const { return !stretches_.next(start, end).empty(); }

  // The same for any pointer: null when it is not ours.
  Span* find(const void* pointer) const { return holds(pointer) ? span_of(pointer) : nullptr; }

  uintptr_t address(const Span* span) const { return base() + (static_cast<uintptr_t>(span - spans()) << kUnitShift); }

  // Whether `span` is a readable entry of the table. Adding to or subtracting from a valid entry is fine.
  bool contains(const Span* span) const { return span >= spans() && static_cast<size_t>(span - spans()) < count(); }

  // What was asked for of blocks in slabs.
  RH_INLINE Sizes& sizes() { return sizes_; }

  // Makes fresh memory usable: at least `least` units, up to `wanted`. It reads as zero and its descriptors are
  // all zero. Gives the first descriptor and sets `*got`, or null when the OS or the window has no more.
  Span* extend(Units least, Units wanted, Units* got);

  // The same in two steps, for a realm that is open, by one thread at a time. The first calls the OS, and changes
  // nothing that others read; the second enters the result in the books, which the arena's lock guards. It gives null
  // when there is no memory, or when the realm is not as it was: in the child of a handler that forked meanwhile.
  struct Growth {
    uintptr_t frontier, reserved_end;  // as they were
    uintptr_t start, end;              // room to commit memory in
    size_t committed = 0;              // from the start on
    Stretches::Range piece = {};       // what was reserved for it
    bool wishes_huge = false;          // for as long as it is the youngest
  };
  Growth prepare(Units least, Units wanted, Fresh fresh = Fresh::limited);
  Span* enter(const Growth& growth, Units* got);

  // Where pieces lie anywhere they go back one by one. How many there may be; one of them, if all of it is the arena's
  // (else null); and its end: nothing of it is in use, and its descriptors are of kind none.
  size_t pieces() const { return k64Bit ? 0 : stretches_.count(); }
  Span* piece(size_t index, Units* length) const;
  void release_piece(size_t index);

  // Gives back all address space, tables and all. Nothing of the realm may be used again.
  void release_all();

  // In a fork's child: the realm is as it was when the copy was taken. What was used behind its frontier since is lost.
  void go_back_to(const RealmCopy& copy);

  // In a fork's child: the thread that was between the two steps of growing is not here.
  void forget_growth();

  // False once memory has been taken: too late.
  bool set_window(const Window& window);

  // What of that which is committed from now on is to lie in huge pages of the system's.
  void prefer_huge(HugePages which) { huge_pages_ = which; }
  HugePages huge_pages() const { return huge_pages_; }

  // The dense memory that huge pages were asked for last, of which that is to end: what is not touched by now may never
  // be, and what goes back is not to come again as a huge page. Empty when there is none. The caller holds the arena's
  // lock, and calls platform::prefer_small() without it.
  Stretches::Range take_young();

  // No huge page is to lie where this piece of memory does, of which little else may be used. Only so often: each may
  // cost two memory mappings.
  void keep_sparse(uintptr_t start, size_t size);

  // Finds the window its place, before memory is taken. False when there is none: then extend() tries again.
  bool open();

  // For debug builds: whether what is committed is part of what is reserved, and that of the stretches.
  bool is_valid() const;

  // What was set, or became of it: one that found no room where it was to lie lies anywhere.
  const Window& window() const { return wanted_; }

  // Address space at hand that needs no reservation; where pieces do not follow each other, take it before
  // asking for more than it holds.
  Units room() const { return Units{(reserved_end_ - frontier_) >> kUnitShift}; }

  uintptr_t base() const { return base_.load(); }
  // Where the first memory taken lies; 0 before that.
  uintptr_t first_address() const { return stretches_[0].start; }

  uint64_t window_size() const { return window_end_ - base(); }
  size_t reserved() const { return reserved_; }
  size_t committed() const { return committed_; }
  // What the descriptors and the notes take.
  size_t side_tables() const;

  // All descriptors that can be read, in address order.
  Span* first() const { return spans(); }
  size_t count() const { return span_.load_acquire() >> kUnitShift; }

  // Those that may be in use lie in runs, one for each stretch of memory that was taken. Between them there may be more
  // than anyone can look at: address space that is somebody else's.
  struct Run {
    Span *first, *end;
    bool empty() const { return first == end; }
  };
  // What is left from `span` on of the run it lies in, or the next; an empty one when there is none.
  Run run_from(const Span* span) const;

  template <typename Visit> void each_span(Visit visit) const {
    for (Run run = run_from(first()); !run.empty(); run = run_from(run.end))
      for (Span* span = run.first; span < run.end; ++span) visit(span);
  }

 private:
  Growth begin() const { return {frontier_, reserved_end_, frontier_, reserved_end_}; }
  bool reserve_more(size_t least, Growth* growth);
  bool may_take(uintptr_t start, size_t size) { return stretches_.have_room_for({start, start + size}); }
  void note_taken(uintptr_t start, size_t size);
  bool wishes_huge(Fresh fresh) const;
  bool ends_with_huge(const Growth& growth, Fresh fresh) const;
  size_t commit_some(uintptr_t start, size_t least, size_t wanted);
  void touch_descriptors(uintptr_t start, uintptr_t end);
  Span* at(uintptr_t address) const { return spans() + ((address - base()) >> kUnitShift); }
  Span* spans() const { return spans_.load(); }

  // One window, and pieces that lie anywhere, each have their own.
  bool reserve_piece(size_t size, Growth* growth);
  bool commit_tables_to(uintptr_t end);
  void renew_tables();

  // Of one window.
  bool open_anywhere();
  bool open_sparse();
  bool open_sparse_at(const Layout& layout, uintptr_t table);
  bool open_whole(uintptr_t size);
  bool open_in_place();
  bool open_at(uintptr_t base, uintptr_t size);
  void set_tables(uintptr_t table, uintptr_t table_end, uintptr_t notes, uintptr_t notes_end);
  bool reserve_tables_to(uintptr_t end);

  // What free() reads, together in one cache line. Only span_ changes after the first block was handed out, and
  // a thread that holds a block has seen a span_ that covers it.
  Word<uintptr_t> base_;
  Word<uintptr_t> span_;  // bytes from base_ for which the table is readable; published when its descriptors are
  Word<Span*> spans_;
  Sizes sizes_;

  uintptr_t frontier_ = 0;      // memory below is committed
  uintptr_t reserved_end_ = 0;  // memory from frontier_ to here is reserved
  uint64_t window_end_ = 0;
  SideTable table_;
  bool opened_ = false;
  bool whole_ = false;  // the window is reserved in one piece already
  HugePages huge_pages_ = HugePages::dense;
  Window wanted_;
  size_t reserved_ = 0;
  size_t committed_ = 0;
  Stretches::Range young_ = {};
  Stretches stretches_;
};

RH_HIDDEN extern constinit Realm g_realm;

// The realm's books at one moment; the caller holds the arena's lock.
class RealmCopy {
 public:
  void take() { __builtin_memcpy(bytes_, static_cast<const void*>(&g_realm), sizeof(bytes_)); }

 private:
  friend class Realm;
  alignas(Realm) unsigned char bytes_[sizeof(Realm)];
};

}  // namespace rh
