// A heap: what one thread allocates from without a lock, and what it shares with others under one.
//
// The files of this folder stand in an order, and each includes only those before it:
//
//   account     what is held, at the peak, at most
//   region      a heap over the caller's memory, or near a program's code
//   regions     all of these, and which of them a pointer lies in
//   types       a heap's fields
//   accounts    what first-class heaps and tags hold
//   books       whether what they say balances, for debug builds
//   retained    counts what heaps hold back
//   spans       where a heap's spans come from, and where they go
//   large       blocks with a span of their own
//   watch       whether every allocation takes the slow path
//   guards      a few blocks on guarded pages
//   block       which block a pointer means
//   slab_lists  which slab a heap uses next, and which it gives back
//   sparse      pages of slabs of which little is in use
//   abandoned   heaps whose threads are gone
//   remote      blocks freed by a thread that does not own their slab
//   registry    all heaps there are
//   refill      where a bin's next blocks come from
//   lending     which class serves the requests of one that is hardly used
//   shared      what is different about first-class heaps: those that all threads share, and those bound to one
//   tags        the heaps of tags, and which of them a thread allocates from
//   idle        memory that goes back to the OS
//   sampled     the blocks that a profile tells of
//   fork, mend  what is left of heaps in a fork's child, and after a thread was terminated
//   stats       what heaps hold
//   heap        what the layer above calls
//
// So that memory was freed, or that there is none, travels up as a value returned, and heap.cpp alone acts on it.
#pragma once

#include <bit>

#include "arena/span_store.h"
#include "heap/account.h"
#include "platform/thread_slot.h"
#include "profile/profile.h"
#include "slabs/slab.h"

namespace rh {

// Blocks of one slab on their way to its owner.
struct Outgoing {
  Span* slab = nullptr;
  Heap* owner = nullptr;  // when the first came; who has adopted the slab since gets them from there
  BlockPosition first = kNoPosition;
  BlockPosition last = kNoPosition;
  uint16_t count = 0;

  bool empty() const { return first == kNoPosition; }
  // Empty before it has no slab: its thread may be terminated in between.
  void clear() {
    first = kNoPosition;
    std::atomic_signal_fence(std::memory_order_release);
    *this = {};
  }
  size_t bytes() const { return count * size_t{slab::properties(slab).size}; }
};

// Batches on their way to one owner together: messages, linked as they will be in its inbox (heap/remote.cpp).
struct Parcel {
  Heap* owner = nullptr;
  Block *first = nullptr, *last = nullptr;
  size_t bytes = 0;
};

// What is not where others find it of a heap that was left behind: blocks in bins, current slabs and batches; in
// hardened builds those that are kept from use.
enum class Leavings : uint8_t { all, delayed, none };

// What a fork made of a heap, in the child; before it, what it found (heap/fork.cpp).
enum class ForkState : uint8_t {
  whole,
  missed,      // its lock could not be had: it may be half-changed
  to_restore,  // its thread is not there: abandoned::take_over before it is used
};

// Which thread owns a heap, by a number that no thread has twice: what is told from it holds whoever ends meanwhile.
using Tenant = size_t;
inline constexpr Tenant kNoTenant = 0;  // of a heap that no one thread owns
inline constexpr Tenant kNewcomer = 1;  // a thread that has no heap yet; owns none
inline constexpr Tenant kFirstTenant = 2;

// A set of classes; others may read it.
class ClassSet {
 public:
  void add(SizeClass size_class) {
    Word<uintptr_t>& word = words_[size_class / kBits];
    word.store(word.load() | uintptr_t{1} << size_class % kBits);
  }

  bool has(SizeClass size_class) const { return (words_[size_class / kBits].load() >> size_class % kBits & 1) != 0; }

  void clear() {
    for (Word<uintptr_t>& word : words_)
      if (word.load() != 0) word.store(0);
  }

  // Takes all out, each of which is visited.
  template <typename Visit> void take_each(Visit visit) {
    for (size_t at = 0; at < kWords; ++at)
      for (uintptr_t left = words_[at].load(); left != 0; left &= left - 1)
        visit(static_cast<SizeClass>(at * kBits + static_cast<unsigned>(std::countr_zero(left))));
    clear();
  }

 private:
  static constexpr size_t kBits = 8 * sizeof(uintptr_t);
  static constexpr size_t kWords = (size_class::kCount + kBits - 1) / kBits;
  Word<uintptr_t> words_[kWords] = {};
};

// Blocks that their user has freed and that are kept from being used again for a while: what is written there meanwhile
// is seen (hardened/delay.h).
template <typename Block, size_t kPlaces> struct DelayedOf {
  Block places[kPlaces];
  unsigned left;  // of this turn, which goes from the last place in use to the first
};
struct Delayed {
  void do_without() { is_in_use = false; }
  bool is_in_use = true;
  DelayedOf<void*, 256> small;  // or as many of these places as the option says
  DelayedOf<void*, 8> medium;
  DelayedOf<Span*, 4> large;
};
struct NothingDelayed {
  void do_without() {}
};

// What a thread knows of its allocations while they are watched (heap/watch.h): which are chosen next, of each class,
// of the large ones, and of those from heaps of the program's.
struct Watched {
  struct Next {
    int64_t guarded;  // allocations to the next one on guarded pages
    int64_t sampled;  // bytes to the next one that the profile hears of
  };
  static constexpr size_t kLarge = size_class::kCount, kOfHeaps = kLarge + 1;

  Next next[kOfHeaps + 1] = {};
  uint64_t guarded_every = 0, sampled_every = 0;  // what they were drawn by; 0: none is chosen
  uint64_t random = 0;                            // 0: to be seeded
};

// The tags that a thread has pushed (heap/tags.h).
struct Tagging {
  static constexpr size_t kDeepest = 48;  // tags pushed beyond that leave the last one in force
  size_t depth = 0;
  Heap* heaps = nullptr;            // the thread's, linked by next_beside
  uint8_t in_force[kDeepest] = {};  // at each depth
  Heap* typed[kPartitions] = {};    // of no tag, by the partition; null: to be looked for among the others
};

struct Heap {
  // Powers of two. Each batch keeps a slab, and where addresses are short heaps have fewer of them.
  static constexpr size_t kOutgoing = k64Bit ? 32 : 16, kParcels = 8;

  // ---- the owning thread's alone ----
  Block* bins[size_class::kBins] = {};  // blocks of the current slabs
  Word<Tenant> tenant;                  // read by anyone; written by who has just become the owner
  Outgoing outgoing[kOutgoing] = {};
  Parcel parcels[kParcels] = {};
  size_t held = 0;  // bytes in both

  // ---- under the lock ----
  Lock lock{LockRank::heap};
  Word<ThreadToken> token;  // of the owning thread; read by a thread looking for its own heap
  ForkState fork_state = ForkState::whole;
  Span* current[size_class::kCount] = {};
  uint8_t uses[size_class::kCount] = {};       // how often a class was refilled, while that is seldom
  uint8_t lent[size_class::kCount] = {};       // how many blocks of its lender's it was given (heap/lending.h)
  uint16_t unserved[size_class::kCount] = {};  // allocations that were passed, and have no block (heap/watch.h)
  SpanList available[size_class::kCount] = {};
  ClassSet had_slabs;  // the classes that a shared heap has or had slabs of
  SpanStore store;
  Units store_counted;                 // as held back (heap/spans.cpp)
  Units looked_at;                     // what the heap had when it last gave up what is unused (heap/slab_lists.h)
  std::atomic<Heap*> cursor{nullptr};  // in the registry: which heap to look at next for slabs left behind
  SpanList full;                       // of a shared heap: its full slabs
  SpanList large;                      // of a shared heap: its large blocks
  size_t freed = 0;                    // of a shared heap: the bytes still to be counted (heap/retained.h)
  Word<Leavings> leavings;             // once it is left behind
  Units sparse, sparse_told;           // slabs in that state, and as others know of it (heap/slab_lists.h)
  Word<bool> gives_sparse;             // it grew while these were much of all memory: sparse::give_some

  // ---- anyone ----
  alignas(64) std::atomic<Block*> inbox{nullptr};  // messages: heap/remote.cpp
  std::atomic<size_t> waiting{0};                  // the bytes in there, about
  std::atomic<Span*> span_inbox{nullptr};          // spans from this heap's store: heap/spans.cpp
  std::atomic<size_t> units_waiting{0};            // the units in there, about

  // ---- read by others, seldom written ----
  alignas(64) platform::Ownership ownership;
  bool shared = false;             // a first-class heap: the lock covers the owner's fields too, unless it is bound
  bool sampled = false;            // it has the blocks of threads' that a profile tells of (heap/sampled.h)
  uint8_t tag = 0;                 // of a shared heap: whose it is; 0: no tag's
  uint8_t partition = 0;           // of a shared heap: what its memory is of (arena/partition.h)
  Word<bool> known;                // a program's: a profile was told of blocks of it
  uint16_t life = 0;               // of a shared heap: its handle tells it from others that lay there
  Word<Heap*> home;                // of a bound heap: that of the thread it is bound to; written under the lock
  Heap* next = nullptr;            // in the registry; set before it is published
  Heap* previous = nullptr;        // of a shared heap
  uint64_t number = 0;             // of a shared heap: in the list those behind it have lower ones (registry::Walk)
  Heap* next_spare = nullptr;      // of a shared heap that was destroyed, and is kept for the next
  Account* tag_account = nullptr;  // of a tag's heap
  Heap* next_of_tag = nullptr;     // of a tag's or partition's heap: set before it is published
  Word<unsigned> node;             // where its thread ran when it got it
  ClassSet stripped;               // left behind, slabs of these adopted; more come by the inbox

  // By the fork under way.
  bool is_forking = false;  // owned by its thread
  bool is_at_rest = false;  // owned by none
  Block* inbox_at_fork = nullptr;
  Span* span_inbox_at_fork = nullptr;
  Heap* next_at_fork = nullptr;

  // Written by the owner, or under the lock.
  alignas(64) Counter refills, slabs_taken, marks, remote_frees, remote_batches;
  Counter seen_activity, seen_store_uses, looks_at_rest;  // whether it rests (heap/idle.cpp)
  Account account;                                        // of a shared heap (heap/accounts.h)

  // ---- the owning thread's alone, last because they are seldom used ----
  Watched watched = {};
  Tagging tagging;
  Heap* next_beside = nullptr;  // of a tag's or partition's heap: among its thread's
  std::conditional_t<kHardened, Delayed, NothingDelayed> delayed = {};
};

}  // namespace rh

// An empty heap's bins, for threads that have none yet; and beside them, so that malloc takes one address for both, the
// class of each size up to kTableMax.
struct alignas(64) rh::platform::Unset {  // as a heap is
  Block* bins[size_class::kBins] = {};
  Word<Tenant> tenant{kNewcomer};
  // While allocations are watched (heap/watch.h), the bins of those that have been passed.
  Word<SizeClass> classes[kTableMax + 1] = {};
  Word<size_t> medium_sizes{kMaxSmall - kTableMax};  // how many above kTableMax have a class; 0 while watched

  constexpr Unset() {
    for (size_t size = 0; size <= kTableMax; ++size) classes[size].set(size_class::kTable[size]);
  }
};
static_assert(offsetof(rh::Heap, bins) == offsetof(rh::platform::Unset, bins));
static_assert(offsetof(rh::Heap, tenant) == offsetof(rh::platform::Unset, tenant));

namespace rh {

using size_class::passed_bin;

// The heap that the calling thread allocates from, for the fast paths: before it has one, null or a heap with empty
// bins that owns nothing. The slow paths ask the next three.
RH_INLINE Heap* thread_heap() { return static_cast<Heap*>(platform::thread_word()); }

// What the calling thread allocates from: its own heap or, while a tag of its is in force, its heap of that tag, which
// belongs to it as its own does. Null when it has none yet.
inline Heap* heap_in_use_if_any() { return static_cast<Heap*>(platform::thread_word_slow()); }

// That of the tag in force; null when none is.
inline Heap* tagged_heap() {
  Heap* heap = heap_in_use_if_any();
  return heap != nullptr && heap->shared ? heap : nullptr;
}

// The thread's own, for the slow paths, whatever tag is in force: null when there is none yet.
inline Heap* own_heap_if_any() {
  Heap* heap = heap_in_use_if_any();
  return heap != nullptr && heap->shared ? heap->home.load() : heap;
}

// Whether the calling thread owns the heap: its own, or one bound to it.
RH_INLINE bool is_mine(const Heap* heap) {
  uintptr_t own = platform::unset_address();
  platform::go_to_thread_word(own);
  if (platform::kUnsetIsNull && own == 0) return false;
  return heap->tenant.load() == reinterpret_cast<const platform::Unset*>(own)->tenant.load();
}

// The same of a heap that is not the thread's own. Of another thread's the number lies beside what that thread writes
// all the time; that it is no first-class heap does not.
RH_INLINE bool is_bound_to_me(const Heap* heap) { return heap->shared && is_mine(heap); }

// Whether it is a first-class heap that one thread owns.
inline bool is_bound(const Heap* heap) { return heap->home.load() != nullptr; }

// Whether a program made it, and may destroy it: it is shared, but no tag's nor a partition's. Those stay, like
// threads' heaps.
inline bool is_first_class(const Heap* heap) {
  return heap->shared && heap->tag == 0 && (!kHardened || heap->partition == kUntyped);
}

// Who works on a heap, holding its lock.
struct Caller {
  ThreadToken token;
  bool is_owner;  // may touch the owner's own fields
};

// A block from the bin, or null: then it is to be refilled.
RH_INLINE Block* pop(Heap* heap, size_t size_class) {
  Block* block = heap->bins[size_class];
  if (RH_LIKELY(block != nullptr)) {
    slab::of_unwritten(block);
    heap->bins[size_class] = block->next;
    block->mark = 0;
  }
  return block;
}

// Frees a block of the heap's own, by its owner. True when that is to look at the slab.
RH_INLINE bool free_own(Heap* heap, Span* slab, Block* block) {
  return slab::free_local(slab, block, &heap->bins[slab->bin.load()]);
}

}  // namespace rh
