// A heap: what one thread allocates from without a lock, and what it shares with others under one.
//
//   malloc  allocate ─ pop the class's bin ────────────────────────────────→ block
//             └ bin empty: allocate_slow ─ refill (heap's lock) ─ drain inbox, then blocks from
//                 the current slab → the next available slab → an orphan's → the stash → the arena
//   free    deallocate_fast ─ slab is mine: link into it, count ─────────────→ done
//             ├ count reached: free_reached_mark (heap's lock) ─ make available, or release
//             └ not mine: deallocate_slow ─ batch for its owner → one push to its inbox a batch
//                                         ├ large block → the arena
//                                         └ not ours → whoever made it (entry/foreign)
#pragma once

#include "platform/thread_slot.h"
#include "slabs/slab.h"

namespace rh {

// Blocks of one slab on their way to its owner.
struct Outgoing {
  Span* slab = nullptr;
  Block* first = nullptr;
  Block* last = nullptr;
  uint32_t count = 0;
};

// What a fork made of a heap, in the child; before it, what it found (heap/fork.cpp).
enum class ForkState : uint8_t {
  whole,
  missed,      // its lock could not be had: it may be half-changed
  to_restore,  // its thread is not there: fork::restore before it is used
};

struct Heap {
  static constexpr size_t kOutgoing = 16;  // a power of two
  static constexpr size_t kStashMost = 8;

  // ---- the owning thread's alone ----
  Block* bins[size_class::kCount] = {};  // blocks taken from the current slabs
  bool bin_zero[size_class::kCount] = {};
  Outgoing outgoing[kOutgoing] = {};

  // ---- under the lock ----
  Lock lock{LockRank::heap};
  Word<ThreadToken> token;  // of the owning thread; read by a thread looking for its own heap
  bool shared = false;      // a first-class heap: the lock covers the owner's fields above too
  uint16_t life = 0;        // of a shared heap: its handle tells it from others that lay there
  ForkState fork_state = ForkState::whole;
  Span* current[size_class::kCount] = {};
  uint8_t uses[size_class::kCount] = {};  // how often a class was refilled, while that is seldom
  SpanList available[size_class::kCount] = {};
  SpanList stash;  // empty slabs of one unit, for any class
  size_t stashed = 0;
  bool stash_is_held = false;
  SpanList full;     // of a shared heap: its full slabs
  SpanList large;    // of a shared heap: its large blocks
  size_t freed = 0;  // of a shared heap: the bytes that idle is still to be told of

  // ---- anyone ----
  alignas(64) std::atomic<Block*> inbox{nullptr};  // messages: heap/remote.cpp
  std::atomic<size_t> waiting{0};                  // the bytes in there, about
  std::atomic<bool> stripped{false};  // left behind, its slabs adopted; more come by the inbox
  platform::Ownership ownership;
  Heap* next = nullptr;      // in the registry; set before it is published
  Heap* previous = nullptr;  // of a shared heap

  // By the fork under way.
  bool is_forking = false;  // owned by its thread
  bool is_at_rest = false;  // owned by none
  Block* inbox_at_fork = nullptr;
  Heap* next_at_fork = nullptr;

  // Written by the owner, or under the lock.
  Counter refills, slabs_taken, marks, remote_frees, remote_batches;
  Counter seen_activity;  // the idle helper's note
};

// The calling thread's heap, for the fast paths: before it has one, null or a heap with empty bins that owns nothing. The
// slow paths ask own_heap_if_any().
RH_INLINE Heap* thread_heap() { return static_cast<Heap*>(platform::thread_word()); }

// ---- blocks: the calling thread's heap ----------------------------------------------------------

// Keeps what was asked for of a block in a slab, where that is kept.
RH_INLINE void* noted(Block* block, SizeClass size_class, size_t size) {
  if constexpr (kExactSizes) {
    if (RH_LIKELY(block != nullptr)) g_realm.sizes().note(block, size, size_class == 0);
  }
  return block;
}

// A block from the bin, or null: then allocate_slow is to be asked.
RH_INLINE Block* pop(Heap* heap, SizeClass size_class) {
  Block* block = heap->bins[size_class];
  if (RH_LIKELY(block != nullptr)) heap->bins[size_class] = block->next;
  return block;
}

RH_INLINE void* allocate_fast(size_t size) {
  Heap* heap = thread_heap();
  if (RH_UNLIKELY(size > kTableMax || heap == nullptr)) return nullptr;
  SizeClass size_class = size_class::tabled(size);
  return noted(pop(heap, size_class), size_class, size);
}

// Any size; null when out of memory. Never changes errno.
void* allocate_slow(size_t size);

RH_INLINE void* allocate(size_t size) {
  void* block = allocate_fast(size);
  return RH_LIKELY(block != nullptr) ? block : allocate_slow(size);
}

void* allocate_zeroed(size_t size);

// `alignment` is a power of two up to kMaxAlignment.
void* allocate_aligned(size_t alignment, size_t size);

RH_COLD void free_reached_mark(Span* slab);

// The span of an address that the calling thread owns; null for any other. Of a slab only the first unit has an owner.
RH_INLINE Span* own_span(const void* pointer) {
  if (RH_UNLIKELY(!g_realm.holds(pointer))) return nullptr;
  Span* span = g_realm.span_of(pointer);
  Heap* heap = thread_heap();
  if (RH_UNLIKELY(span->owner.load() != heap)) return nullptr;
  if (platform::kUnsetIsNull && RH_UNLIKELY(heap == nullptr)) return nullptr;
  return span;
}

// Frees a block of the calling thread's own. False, and nothing done, when it is anything else: then deallocate_slow is
// to be asked.
RH_INLINE bool deallocate_fast(void* pointer) {
  Span* span = own_span(pointer);
  if (RH_UNLIKELY(span == nullptr)) return false;
  if (slab::free_local(span, static_cast<Block*>(pointer))) free_reached_mark(span);
  return true;
}

// The same for a pointer that may lie within a block: only at the start of one.
RH_INLINE bool deallocate_start_fast(void* pointer) {
  Span* span = own_span(pointer);
  if (RH_UNLIKELY(span == nullptr)) return false;
  size_t offset = address_of(pointer) % kUnitSize;
  if (RH_UNLIKELY(!size_class::position(span->size_class.load(), offset).is_start)) return false;
  if (slab::free_local(span, static_cast<Block*>(pointer))) free_reached_mark(span);
  return true;
}

// What became of a pointer. `foreign`: nothing; it is not ours, and the caller must route it.
enum class Freed { done, foreign };
RH_COLD Freed deallocate_slow(void* pointer);

// What was asked for of a block in a slab of the calling thread's own, with kExactSizes; else its usable size. False for
// any other pointer: then requested_size is to be asked.
RH_INLINE bool requested_size_fast(const void* pointer, size_t* size) {
  Span* slab = own_span(pointer);
  if (RH_UNLIKELY(slab == nullptr)) return false;
  *size = slab::requested_size(slab, pointer);
  return true;
}

// The slab of a live block of the calling thread's own; null for anything else.
RH_INLINE Span* own_live_slab(const void* pointer) {
  Span* span = own_span(pointer);
  if (RH_UNLIKELY(span == nullptr)) return nullptr;
  bool live = slab::is_live(span, pointer, address_of(pointer) % kUnitSize);
  return RH_LIKELY(live) ? span : nullptr;
}

// Frees any live block of ours and notes it as free. False, and nothing done, when it is none as far as can be told.
bool deallocate_live(void* pointer);

inline Freed deallocate(void* pointer) {
  return RH_LIKELY(deallocate_fast(pointer)) ? Freed::done : deallocate_slow(pointer);
}

// Whether the address is ours. What follows is only for such pointers, and ends the process when they are not the
// start of a live block (as far as can be told), naming `function`.
bool in_realm(const void* pointer);

// Whether it is the start of a block of ours in somebody's hands. A block of a thread's heap that was freed without a
// note looks alive.
bool is_live(const void* pointer);

size_t usable_size(const void* pointer, const char* function);

// What was asked for, with kExactSizes; else the usable size. `function` as above.
size_t requested_size(const void* pointer, const char* function);

// The start of the block that `pointer`, which is in the realm, lies in.
void* block_start(const void* pointer, const char* function);

// Whether any address at all lies in a slab or large block. Takes longer the further into a large block it lies.
bool owns(const void* pointer);

// Resizes in place, or null: then the block must move. `Fit::loose` also keeps a block that would be less than half used.
enum class Fit : uint8_t { close, loose };
void* resize_in_place(void* pointer, size_t size, Fit fit = Fit::close);

// Resizes by moving pages of a large block to a new place, or null: then the content must be copied.
void* resize_by_moving(void* pointer, size_t size);

// The usable size of a request of `size`; 0 when it cannot be met.
size_t good_size(size_t size);

// ---- inside the heap layer ----------------------------------------------------------------------

// The calling thread's heap; made or adopted at first. Null when there is no memory for it.
Heap* own_heap();

// The same, but null when there is none yet.
inline Heap* own_heap_if_any() { return static_cast<Heap*>(platform::thread_word_slow()); }

// The caller holds heap.lock and is the owner, or the heap is shared.
Block* refill(Heap* heap, SizeClass size_class);

// Who works on a heap, holding its lock.
struct Caller {
  ThreadToken token;
  bool is_owner;  // may touch the owner's own fields
};

// A slab may have become worth using or empty. The caller holds heap.lock.
void review(Heap* heap, Span* slab, Caller caller);

// Collects what others have freed. The caller holds heap.lock.
void drain(Heap* heap, Caller caller);

// By the owner: sends what it holds back for others.
void post_all(Heap* heap);

void free_remote(Heap* heap, Span* slab, Block* block);

// Gives back to the arena every slab of the heap that is empty. The caller holds heap.lock; `token` is its own.
void release_empty(Heap* heap, ThreadToken token);

// The class has no current slab any more; gives the one it had, or null. The caller holds heap.lock.
Span* take_current(Heap* heap, SizeClass size_class);

// By the owner, holding heap.lock: returns what is in its bins to the slabs.
void empty_bins(Heap* heap);

// Returns the stash to the arena. The caller holds heap.lock.
void give_back_stash(Heap* heap, ThreadToken token);

// Returns an empty slab that is in no list. The caller holds heap.lock.
void release_slab(Heap* heap, Span* slab, ThreadToken token);

[[noreturn]] void fail_invalid(const char* function, const void* pointer);

}  // namespace rh
