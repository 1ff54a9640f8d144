// The descriptor of one unit of the realm, out of line in a table parallel to it. The first unit of a span or slab
// carries the figures of the whole. Who may touch which field:
//
//   kind, units          written under the lock of whoever holds the span: the arena while it is free, the owning
//                        heap while it is a slab. Read by any thread that holds a live block of it.
//   free span            everything: the arena's lock.
//   kept span            everything: the lock of the heap that keeps it (arena/span_store.h), which its owner names.
//                        Its neighbours' holders read kind and owner.
//   slab: owner          written under the owning heap's lock, read by anyone.
//   slab: free, begun,   the owning thread alone, without a lock, while blocks of it are live. When all its blocks
//         countdown      are free, nobody holds a reference, and the owning heap's lock covers these too.
//   slab: the rest       the owning heap's lock; statistics read the words among them without it.
//
// Conservation law of a slab, under the owning heap's lock (free_count and outstanding are as of the last arming,
// and armed - countdown local frees have come since, unless they go into the bin, which changes nothing):
//   outstanding + free_count + returned + hollow + (capacity - carved) == capacity
// where outstanding counts blocks handed out, those in the owner's bin included, and hollow those that lie in a hole
// (slabs/holes.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/config.h"
#include "base/secret.h"
#include "base/units.h"
#include "base/word.h"

namespace rh {

struct Heap;

struct Block;

// From a free block to the next. What a program writes there by mistake leads, in a hardened build, to no block.
class HardenedLink {
 public:
  HardenedLink() = default;
  HardenedLink(Block* to) { *this = to; }
  HardenedLink& operator=(Block* to) {
    word_ = coded(reinterpret_cast<uintptr_t>(to));
    return *this;
  }
  HardenedLink(const HardenedLink& other) { *this = other; }
  HardenedLink& operator=(const HardenedLink& other) { return *this = static_cast<Block*>(other); }
  operator Block*() const { return reinterpret_cast<Block*>(coded(word_)); }
  Block* operator->() const { return *this; }

 private:
  uintptr_t coded(uintptr_t word) const {
    return word ^ static_cast<uintptr_t>(secret(Secret::links)) ^ reinterpret_cast<uintptr_t>(this) >> 4;
  }
  uintptr_t word_;
};
using Link = std::conditional_t<kHardened, HardenedLink, Block*>;

// A free block: its first word links it to the next, its second says that it is free (slabs/slab.h).
struct Block {
  Link next;
  alignas(8) uint64_t mark;
};
static_assert(sizeof(Block) <= kBlockAlign);

enum class SpanKind : uint8_t {
  none,              // not the start of anything: unused, inside a large span, or not ours
  free_clean,        // free and reads as zero
  free_dirty,        // free with old content, probably resident
  free_decommitted,  // free and not committed
  free_tail,         // last unit of a free span; `units` leads back to its head
  busy,              // free, while its pages are on their way to the OS
  kept,              // free, in the store of a heap
  kept_tail,         // last unit of a kept span; `units` leads back to its head
  slab,              // blocks of one size class
  interior,          // a later unit of a slab; `units` leads back to its head
  large,             // one block
  inside,            // a unit of a long large block that leads back to its head by `units` (heap/large.cpp)
  guarded,           // of the pool of guarded places (heap/guards.h)
};

// Whether a span of this kind is in one of the arena's sets.
constexpr bool is_free(SpanKind kind) {
  return kind == SpanKind::free_clean || kind == SpanKind::free_dirty || kind == SpanKind::free_decommitted;
}

// The owner of a large block that belongs to no heap: nobody, but not null, which early in a program's life looks like
// the heap of the only thread.
inline Heap* const kNobody = reinterpret_cast<Heap*>(1);

// Beside the address of a slab's owner: its countdown is out of date (slab::leave).
inline constexpr uintptr_t kLeft = 2;

// Beside the address of a heap: a large block of a thread's, whose span comes from that heap's store and goes back
// there. kNobody is the same without a store.
inline constexpr uintptr_t kFromStore = 1;

// Beside the address of a heap: free, and in its store.
inline constexpr uintptr_t kInStore = 4;

// Beside the address and that: it waits undivided for a block of its length.
inline constexpr uintptr_t kUndivided = 2;

enum class SlabState : uint8_t {
  current,    // the owner takes its class's blocks from it
  available,  // has free blocks, in the owner's list of its class
  sparse,     // the same, and few blocks of it are in use
  full,       // too few free blocks to be worth taking; in no list (of a shared heap: in its full list)
};

// Where blocks of a slab lie, in steps of the block alignment from its start.
using BlockPosition = uint16_t;
inline constexpr BlockPosition kNoPosition = 0xffff;

// Of a slab: where its blocks start, and what is free.
struct FreeBooks {
  uint32_t portion;  // 2^32 / size of a block: tells where blocks start (slab::starts_block)
  union {
    BlockPosition at_fork;  // a fork's note of `free`
    uint16_t begun;         // where threads are terminated: frees begun since `free` was taken, modulo 2^16
  };
  BlockPosition returned;  // the first block that others have freed, collected from the inbox
};

// Of a slab, how many blocks others have freed, collected from the inbox; and of each unit, whatever it is part of, its
// partition (arena/partition.h), which others look at while the former changes.
class ReturnedAndPartition {
 public:
  static constexpr unsigned kPartitionBits = 5, kMostPartition = (1u << kPartitionBits) - 1;
  static constexpr unsigned kMostReturned = UINT16_MAX >> kPartitionBits;

  unsigned returned() const { return word_.load() >> kPartitionBits; }
  unsigned partition() const { return word_.load() & kMostPartition; }
  void set_returned(unsigned count) { set(count, partition()); }
  void set_partition(unsigned partition) { set(returned(), partition); }

 private:
  void set(unsigned count, unsigned partition) {
    word_.store(static_cast<uint16_t>(count << kPartitionBits | partition));
  }
  Word<uint16_t> word_;
};

struct Span {
  Word<Heap*> owner;
  union {
    Block* free;       // slab: blocks freed by the owner
    Span* left;        // free span: smaller in the tree, or previous of its size
    size_t requested;  // large: the bytes asked for
  };
  Word<uint16_t> countdown;  // local frees until the owner must look at the slab again
  Word<uint16_t> armed;      // what countdown was last set to
  Word<uint16_t> outstanding;
  uint16_t free_count;
  ReturnedAndPartition others;
  Word<uint16_t> carved;  // blocks made so far; the memory behind them is as the arena gave it
  Word<SpanKind> kind;
  Word<uint8_t> bin;    // slab: which of its owner's what is freed goes into: one of its class's two
  SlabState state : 2;  // slab
  bool altered : 1;     // large: who holds it has changed what its pages are (large::note_altered)
  uint8_t node : 3;     // of a span that is dirty or in use: where its pages lie (arena/node_sets.h)
  bool guarded : 1;     // of each unit: its last page is inaccessible (arena/bars.h)
  bool zero : 1;        // slab: what is not carved reads as zero; free span: as its kind
  uint8_t age : 3;      // slab: for how long it has been available (heap/sparse.h)
  uint8_t holes : 4;    // of each unit of a slab: which of its pages are holes
  union {
    FreeBooks freed;  // slab
    Span* right;      // free span: larger in the tree, or next of its size
  };
  Span* next;  // neighbours in a list: a class's slabs, a shared heap's spans, free spans by age
  Span* previous;
  SeenNumber<uint32_t> units;  // length, or the distance back to the head
  uint32_t stamp;  // free span: when it became so, in ms; slab: a number it has, and what lay there before had not
};

static_assert(!k64Bit || sizeof(Span) == 64, "one cache line a descriptor");

// Beside the address of a first-class heap, or of a tag's: a large block in its list. What free asks first, whether the
// owner is the heap that its thread allocates from, is to say no.
inline constexpr uintptr_t kListed = 8;

// Beside the address of a heap bound to a thread: a slab of which a profile has known blocks. What free asks first says
// no, and the slow path asks the profile (heap/sampled.h).
inline constexpr uintptr_t kKnown = 16;

// Beside what else is said of a large block: its user has freed it, and it is kept from use for a while (hardened
// builds).
inline constexpr uintptr_t kDelayed = 32;

// A heap's address with what is said beside it, and without.
inline Heap* with_note(Heap* heap, uintptr_t note) {
  return reinterpret_cast<Heap*>(reinterpret_cast<uintptr_t>(heap) | note);
}
inline bool has_note(const Heap* owner, uintptr_t note) { return (reinterpret_cast<uintptr_t>(owner) & note) != 0; }
inline Heap* without_note(Heap* owner, uintptr_t note) {
  return reinterpret_cast<Heap*>(reinterpret_cast<uintptr_t>(owner) & ~note);
}
inline Heap* without_notes(Heap* owner) {
  return without_note(owner, kLeft | kFromStore | kInStore | kUndivided | kListed | kKnown | kDelayed);
}

// Of a slab.
inline Heap* owner_of(const Span* span) { return without_note(span->owner.load_acquire(), kLeft | kKnown); }

// Doubly linked through next and previous; a span is in one list at a time.
class SpanList {
 public:
  constexpr SpanList() = default;
  bool empty() const { return first_ == nullptr; }
  Span* first() const { return first_; }
  Span* last() const { return last_; }
  void push_front(Span* span);
  void push_back(Span* span);
  void remove(Span* span);
  Span* pop_front();

 private:
  Span* first_ = nullptr;
  Span* last_ = nullptr;
};

inline void SpanList::push_front(Span* span) {
  span->previous = nullptr;
  span->next = first_;
  (first_ != nullptr ? first_->previous : last_) = span;
  first_ = span;
}

inline void SpanList::push_back(Span* span) {
  span->next = nullptr;
  span->previous = last_;
  (last_ != nullptr ? last_->next : first_) = span;
  last_ = span;
}

inline void SpanList::remove(Span* span) {
  (span->previous != nullptr ? span->previous->next : first_) = span->next;
  (span->next != nullptr ? span->next->previous : last_) = span->previous;
}

inline Span* SpanList::pop_front() {
  Span* span = first_;
  if (span != nullptr) remove(span);
  return span;
}

}  // namespace rh
