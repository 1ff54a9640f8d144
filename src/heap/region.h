// A heap whose blocks lie in one range of addresses: the caller's memory, or address space near a program's code. Free
// memory is found by two-level segregated fit (M. Masmano, I. Ripoll, A. Crespo, J. Real: "TLSF: a new dynamic memory
// allocator for real-time systems", ECRTS 2004): lists of free pieces by size, each doubling divided into sixteen, and
// a bit for each list that is not empty; pieces know the one before and the one behind them, and free ones are merged
// at once. So every call takes a bounded time, however many blocks there are, but for walk, trim, reset and recover.
//
// All that a region knows of itself lies in its range: this object at the start, then its lists, then the pieces, and a
// last header that closes them. Each header is sealed, so that what is no block's, or was written over, is known.
//
//   | Region | rows of lists | piece | piece | … | last |  address space, of a near one, that is not committed yet  |
#pragma once

#include "base/bits.h"
#include "base/config.h"
#include "heap/account.h"
#include "platform/lock.h"

namespace rh {

class Region {
 public:
  // A range may have so many bytes: pieces are counted in grains by 32 bits.
  static constexpr uint64_t kMostBytes = (uint64_t{1} << 36) - 4096;

  enum class Kind : uint8_t {
    lent,      // the caller's memory: all of it may be touched, and nothing is asked of the OS
    reserved,  // address space near code, committed as it is needed
  };

  // Of a range of `size` bytes at `base`: where the object lies, and how many bytes from `base` on have to be there
  // for it and the smallest block. 0 where the range has no room for these.
  static size_t least_of(uintptr_t base, size_t size);

  // Lays a region into the range, of which `committed` bytes may be touched: at least least_of, for a lent one all.
  // `key` seals it.
  static Region* lay(Kind kind, uintptr_t base, size_t size, size_t committed, uint64_t key);

  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  // What a pointer that a program gave was seen to be.
  enum class Seen : uint8_t {
    block,    // a live one
    nothing,  // not the start of a block
    free,     // a block that is free already
    overrun,  // a block that was written behind
    lost,     // nothing is certain here any more, and nothing is done
  };
  struct Block {
    Seen seen;
    size_t asked, usable;  // of a live or overrun one
  };
  Block look(const void* block);

  // Frees a live block, for which `asked` may be what the caller says was asked for. For anything else, and another
  // number, nothing is done.
  static constexpr size_t kUnknown = SIZE_MAX;
  Block free(void* block, size_t asked = kUnknown);

  // Null when there is no room, the limit is met or the OS refuses. `alignment` is a power of two.
  void* allocate(size_t alignment, size_t size);

  // Makes a live block longer or shorter where it lies. False when it cannot, and for anything else.
  bool resize(void* block, size_t size);

  // Frees all blocks.
  void reset();

  // Gives free pages back to the OS; of a near region alone. Gives the bytes.
  size_t trim();

  // The blocks in use in the order of their addresses, a few at a time: all that are from before the first step until
  // after the last. Where others free meanwhile each step may begin at the first piece again.
  struct InUse {
    void* block;
    size_t size;
  };
  struct Walk {
    static constexpr size_t kAtOnce = 64;
    InUse found[kAtOnce] = {};
    size_t count = 0;  // none: there are no more
    uint32_t piece = 0, merges = 0;
    uintptr_t from = 0;
  };
  void walk_on(Walk* walk);

  struct Figures {
    size_t in_use = 0, blocks = 0, committed = 0;
  };
  Figures figures();

  // A free piece was written to: where, once; else 0. From then on nothing is handed out.
  uintptr_t take_damage();

  // Of what a thread may have left half-changed: the lists are made anew from the pieces. Where those cannot be relied
  // on nothing is handed out or taken back any more. The caller holds the lock, or nobody else is there.
  void recover();

  // For tests: whether the pieces follow each other, no two that are free, each of which is in its list.
  bool is_valid();

  // Before a near one's memory goes: the OS is no longer charged for it.
  void give_up_charge();

  Kind kind() const { return kind_; }
  uintptr_t base() const { return base_; }
  size_t size() const { return limit_ - base_; }
  Lock& lock() { return lock_; }
  Account& account() { return account_; }

  // In the list of all (heap/regions.h).
  uintptr_t handle = 0;
  bool held_by_fork = false;

 private:
  using Grains = uint32_t;  // of kBlockAlign bytes; and where a piece lies, counted from this object on: 0 is none

  static constexpr unsigned kColumnBits = 4, kColumns = 1u << kColumnBits;
  static constexpr size_t kHeader = kBlockAlign;
  static constexpr Grains kLeastPiece = 2;
  // So much behind a block is there to tell whether its end was overwritten.
  static constexpr size_t kTail = kHardened ? 8 : 0;
  static constexpr uint32_t kUsed = 1;

  struct Piece {
    Grains units;    // with this header
    Grains before;   // of the piece before; 0: this is the first
    uint32_t state;  // kUsed, and above it how many bytes were not asked for; or 0
    uint32_t seal;
    // Of a free one alone.
    Grains next, previous;
    uint32_t hollow;  // pages that went back to the OS
  };
  static_assert(sizeof(Piece) <= kLeastPiece * kBlockAlign);

  struct Row {
    uint32_t filled;  // a bit for each column that is not empty
    Grains first[kColumns];
  };

  struct Column {
    unsigned row, column;
  };

  Region() = default;

  static uintptr_t place(uintptr_t base);
  static unsigned rows_for(size_t size);
  static size_t lists_end(unsigned rows);
  static Column column_of(Grains units);
  static size_t grains_for(size_t size);

  Row* rows() { return reinterpret_cast<Row*>(this + 1); }
  Piece* at(Grains index) { return reinterpret_cast<Piece*>(address_of(this) + size_t{index} * kBlockAlign); }
  Grains index_of(const Piece* piece) const {
    return static_cast<Grains>((address_of(piece) - address_of(this)) / kBlockAlign);
  }
  Grains last() const { return static_cast<Grains>((end_ - address_of(this)) / kBlockAlign) - 1; }
  Piece* behind(Piece* piece) { return at(index_of(piece) + piece->units); }
  bool is_damaged() const { return damaged_.load(std::memory_order_relaxed); }
  bool usable() const { return !inconsistent() && !is_damaged(); }

  uint32_t seal_of(const Piece* piece) const;
  void write(Piece* piece, Grains units, Grains before, uint32_t state);
  void write_before(Piece* piece, Grains before) { write(piece, piece->units, before, piece->state); }
  bool is_sound(Grains index);
  Piece* sound_free(Grains index);
  bool spoil(const Piece* piece);

  void insert(Piece* piece);
  bool unlink(Piece* piece);
  Piece* first_from(uint64_t units);
  Piece* find(Grains units, size_t alignment);
  Grains gap_before(const Piece* piece, size_t alignment) const;
  void start_over();

  Piece* merge(Piece* piece);
  void* take(Piece* piece, Grains units, size_t alignment, size_t size);
  void cut(Piece* piece, Grains units);
  void hand_out(Piece* piece, size_t size);
  bool is_intact(Piece* piece);
  bool lengthen(Piece* piece, Grains units);
  bool fit(Piece* piece, Grains units);
  Block seen(const void* block, Piece** piece);
  size_t payload(const Piece* piece) const { return size_t{piece->units} * kBlockAlign - kHeader; }
  size_t asked(const Piece* piece) const { return payload(piece) - (piece->state >> 1); }
  size_t usable_of(const Piece* piece) const { return kHardened ? asked(piece) : payload(piece); }

  unsigned char tail_of(const Piece* piece) const;
  bool may_grow() const { return kind_ == Kind::reserved && end_ < limit_; }
  bool grow(uint64_t units);
  bool commit_more(size_t bytes);
  struct Pages {
    uintptr_t start, end;
    size_t count() const;
  };
  Pages pages_within(Piece* piece);
  bool fill(Piece* piece);
  size_t empty(Piece* piece);
  size_t shrink_end();

  Lock lock_{LockRank::heap};
  Kind kind_ = Kind::lent;
  unsigned row_count_ = 0;
  uint32_t filled_ = 0;  // a bit for each row that is not empty
  Grains first_ = 0;
  uintptr_t base_ = 0, end_ = 0, limit_ = 0;  // pieces lie before end_, and may up to limit_
  uint64_t key_ = 0;
  size_t in_use_ = 0, blocks_ = 0, hollow_ = 0;
  uint32_t merges_ = 0;
  std::atomic<bool> damaged_{false};
  uintptr_t damage_ = 0;
  Account account_;
};

}  // namespace rh
