#include "heap/registry.h"

#include <bit>
#include <new>

#include "base/compiler.h"
#include "heap/abandoned.h"
#include "heap/books.h"
#include "heap/remote.h"
#include "heap/slab_lists.h"
#include "heap/spans.h"
#include "platform/pages.h"

namespace rh::registry {

namespace {

// A birth looks at this many heaps for one left behind before it makes a new one: so there are never many more heaps
// than threads were alive at once, and a birth among many threads stays cheap.
constexpr int kLooks = 8;

constexpr size_t kHeapSize = align_up(sizeof(Heap), 64);
constexpr size_t kChunkHeader = 64;
constexpr size_t kChunk = 16 * align_up(kHeapSize, platform::kPageSize);
static_assert(kChunk % platform::kMostPageSize == 0);

// A first-class heap has pages of its own, where they are short: those of one that was destroyed go back. What was its
// memory reads as zero to who asks about it.
constexpr size_t kSharedSize = std::bit_ceil(align_up(sizeof(Heap), platform::kPageSize));
constexpr size_t kSharedChunk = 16 * kSharedSize;
static_assert(is_power_of_two(kSharedChunk) && kSharedChunk % platform::kMostPageSize == 0);

struct SharedChunk {
  static constexpr uint32_t kAll = (1u << (kSharedChunk / kSharedSize)) - 1;
  SharedChunk* next;
  uint32_t used;  // a bit for each place; the first is this

  uintptr_t place(unsigned index) const { return address_of(this) + index * kSharedSize; }
};

constinit Lock g_lock{LockRank::registry};
constinit std::atomic<Heap*> g_threads{nullptr};
alignas(64) constinit std::atomic<Heap*> g_cursor{nullptr};  // of those who look for a heap of their own
alignas(64) constinit std::atomic<bool> g_loading{true};
constinit Word<Heap*> g_shared{nullptr};  // whether there are any is asked without the lock
constinit uint64_t g_last_number = 0;
constinit std::atomic<bool> g_fork_waits{false};
constinit SharedChunk* g_shared_chunks = nullptr;

// Who makes and destroys heaps all the time gets them with pages that are there, and a few spans.
constexpr unsigned kMostSpares = 64;
constinit Heap* g_spares = nullptr;
constinit unsigned g_spare_count = 0;
constinit uint16_t g_life = 0;
constinit uintptr_t g_chunk = 0;
constinit uintptr_t g_chunks = 0;  // the latest; the first word of each is the one before
constinit size_t g_chunk_left = 0;
constinit Counter g_thread_heaps;

// For the first heap: most programs have one, and need no chunk. Not where it would go with the library: the C library
// keeps a list of what each thread owns.
alignas(Heap) RH_RARE_ZEROS constinit unsigned char g_first[kHeapSize] = {};
constinit bool g_first_is_used = false;

// Memory for a heap, away from the blocks. The caller holds g_lock. Never given back: heaps are reused.
void* heap_memory() {
  if (!g_first_is_used && !platform::image_may_go()) {
    g_first_is_used = true;
    g_bytes_beside.add(kHeapSize);
    return g_first;
  }
  if (g_chunk_left < kHeapSize) {
    uintptr_t chunk = platform::reserve(kChunk, platform::kPageSize);
    if (chunk == 0) return nullptr;
    if (!platform::commit(chunk, kChunk)) {
      platform::release(chunk, kChunk);
      return nullptr;
    }
    *reinterpret_cast<uintptr_t*>(chunk) = g_chunks;
    g_chunks = chunk;
    g_chunk = chunk + kChunkHeader;
    g_chunk_left = kChunk - kChunkHeader;
  }
  if (!g_arena.take_beside(kHeapSize)) return nullptr;
  void* memory = reinterpret_cast<void*>(g_chunk);
  g_chunk += kHeapSize;
  g_chunk_left -= kHeapSize;
  return memory;
}

// The caller holds g_lock.
SharedChunk* make_shared_chunk() {
  uintptr_t start = platform::reserve(kSharedChunk, kSharedChunk);
  if (start == 0) return nullptr;
  if (!platform::commit(start, kSharedChunk)) {
    platform::release(start, kSharedChunk);
    return nullptr;
  }
  return g_shared_chunks = new (reinterpret_cast<void*>(start)) SharedChunk{g_shared_chunks, 1};
}

// Memory for a first-class heap, which reads as zero. The caller holds g_lock.
void* shared_memory() {
  SharedChunk* chunk = g_shared_chunks;
  while (chunk != nullptr && chunk->used == SharedChunk::kAll) chunk = chunk->next;
  if (chunk == nullptr) chunk = make_shared_chunk();
  if (chunk == nullptr || !g_arena.take_beside(kSharedSize)) return nullptr;
  unsigned index = static_cast<unsigned>(__builtin_ctz(~chunk->used));
  chunk->used |= 1u << index;
  return reinterpret_cast<void*>(chunk->place(index));
}

// The caller holds g_lock, as for the next three.
void add_spare(Heap* heap) {
  heap->life = 0;
  heap->next_spare = g_spares;
  g_spares = heap;
  ++g_spare_count;
}

Heap* take_spare() {
  Heap* heap = g_spares;
  if (heap == nullptr) return nullptr;
  g_spares = heap->next_spare;
  --g_spare_count;
  return heap;
}

// After a change that may have been cut short.
void find_spares() {
  g_spares = nullptr;
  g_spare_count = 0;
  for (Heap* heap = g_shared.load(); heap != nullptr; heap = heap->next)
    if (is_spare(heap)) add_spare(heap);
}

uint16_t next_life() { return g_life = static_cast<uint16_t>(g_life % kMostLife + 1); }

// The caller holds g_lock.
void free_shared_memory(Heap* heap) {
  uintptr_t place = address_of(heap);
  SharedChunk* chunk = reinterpret_cast<SharedChunk*>(align_down(place, kSharedChunk));
  if (!platform::make_zero(place, place + kSharedSize))
    __builtin_memset(reinterpret_cast<void*>(place), 0, kSharedSize);
  chunk->used &= ~(1u << ((place - address_of(chunk)) / kSharedSize));
  g_bytes_beside.subtract(kSharedSize);
}

// Each call looks one further round the list of heaps.
Heap* next_to_look_at(std::atomic<Heap*>& cursor) {
  Heap* heap = cursor.load(std::memory_order_acquire);
  if (heap == nullptr) heap = g_threads.load(std::memory_order_acquire);
  if (heap != nullptr) cursor.store(heap->next, std::memory_order_release);
  return heap;
}

// Who has run elsewhere leaves memory that lies there.
bool is_near(const Heap* heap) { return heap->node.load() == platform::node(); }

// `elsewhere`: whether there are some on other nodes, which were left out; null when these are welcome.
Heap* find_ownerless(bool* elsewhere) {
  for (int look = 0; look < kLooks; ++look) {
    Heap* heap = next_to_look_at(g_cursor);
    if (heap == nullptr) return nullptr;
    if (elsewhere != nullptr && !is_near(heap)) {
      *elsewhere = true;
      continue;
    }
    if (heap->ownership.try_acquire()) {
      LockGuard guard(heap->lock);
      abandoned::take_over(heap, platform::thread_token());
      heap->node.store(platform::node());
      heap->stripped.clear();
      heap->leavings.store(Leavings::all);
      return heap;
    }
    // The loader resets thread-local storage once while a program starts: this thread has forgotten its heap. Later a
    // token proves nothing: it may be that of a dead thread, whose heap another is just taking over.
    if (g_loading.load(std::memory_order_relaxed) && heap->token.load() == platform::thread_token()) return heap;
  }
  return nullptr;
}

Heap* make() {
  LockGuard guard(g_lock);
  void* memory = heap_memory();
  if (memory == nullptr) return nullptr;
  Heap* heap = new (memory) Heap;
  heap->token.store(platform::thread_token());
  heap->ownership.reset();
  heap->ownership.try_acquire();
  abandoned::note_tenant(heap);
  heap->node.store(platform::node());
  heap->next = g_threads.load(std::memory_order_relaxed);
  g_threads.store(heap, std::memory_order_release);
  g_thread_heaps.add(1);
  return heap;
}

void set_all_aside(Heap* heap, ThreadToken token) {
  empty_bins(heap);
  release_empty(heap, token);
  for (size_t index = 0; index < size_class::kCount; ++index)
    if (Span* slab = take_current(heap, static_cast<SizeClass>(index))) {
      make_available(heap, slab);
      slab::arm(slab, slab::outstanding(slab));
    }
}

// By who has just become the owner of a heap left behind, and holds its lock: what it has goes where it belongs, and
// what nobody uses to the arena.
void put_in_order(Heap* heap, ThreadToken token) {
  abandoned::take_over(heap, token);
  post_all(heap);
  drain(heap, {token, true});
  if (heap->leavings.load() == Leavings::all) {
    set_all_aside(heap, token);
    heap->leavings.store(kHardened ? Leavings::delayed : Leavings::none);
  }
  spans::give_back_all(heap, token);
}

void take_over(Heap* heap, Heap* from, SizeClass size_class) {
  while (Span* slab = pop_available(from, size_class)) {
    slab->owner.store_release(heap);
    from->store.hand_over(Units{slab->units}, &heap->store);
    make_available(heap, slab);
    slab::arm(slab, slab::outstanding(slab));
  }
  for (size_t index = 0; index < size_class::kCount; ++index)
    if (from->available[index].empty()) from->stripped.add(static_cast<SizeClass>(index));
}

// To ask whose it is costs calls of the system: a heap that was left behind long ago would be asked for ever.
bool has_nothing(const Heap* heap, SizeClass size_class) {
  return heap->stripped.has(size_class) && heap->inbox.load(std::memory_order_relaxed) == nullptr &&
         heap->span_inbox.load(std::memory_order_relaxed) == nullptr;
}

}  // namespace

void loaded() { g_loading.store(false, std::memory_order_relaxed); }

Heap* threads() { return g_threads.load(std::memory_order_acquire); }
Heap* shared_heaps() { return g_shared.load(); }
Lock& lock() { return g_lock; }
size_t thread_heaps() { return g_thread_heaps.value(); }
size_t metadata_bytes() { return g_bytes_beside.value(); }

void check_books() {
  for (Heap* heap = threads(); heap != nullptr; heap = heap->next) {
    LockGuard guard(heap->lock);
    books::check(heap);
  }
  LockGuard guard(g_lock);
  for (Heap* heap = shared_heaps(); heap != nullptr; heap = heap->next) {
    LockGuard heap_guard(heap->lock);
    books::check(heap);
  }
  LockGuard arena_guard(g_arena.lock());
  g_arena.check();
}

Heap* adopt_or_make() {
  bool elsewhere = false;
  Heap* heap = find_ownerless(&elsewhere);
  if (heap == nullptr && elsewhere) heap = find_ownerless(nullptr);
  return heap != nullptr ? heap : make();
}

// Slabs of that class alone: who adopts the heap whole will want the others. Another heap's lock is only tried for,
// never waited for: forks and helpers take them in orders of their own.
void adopt_slabs(Heap* heap, SizeClass size_class) {
  Heap* from = next_to_look_at(heap->cursor);
  if (from == nullptr || from == heap || has_nothing(from, size_class) || !is_near(from)) return;
  ThreadToken token = heap->token.load();
  if (!from->lock.try_acquire(token)) return;
  if (from->ownership.try_acquire()) {
    put_in_order(from, token);
    take_over(heap, from, size_class);
    if constexpr (kDebugChecks) books::check(from);  // `heap` is in the middle of a change
    from->ownership.release();
  }
  from->lock.release();
}

void collect_if_left(Heap* heap, ThreadToken token, void (*let_go)(Heap*)) {
  if (heap->leavings.load() == Leavings::none || inconsistent() || !heap->ownership.try_acquire()) return;
  let_go(heap);
  if (heap->lock.try_acquire(token)) {
    put_in_order(heap, token);
    heap->leavings.store(Leavings::none);
    heap->lock.release();
  }
  heap->ownership.release();
}

// ---- the end ------------------------------------------------------------------------------------

// With the thread that owned it out of the way.
static void empty(Heap* heap) {
  LockGuard guard(heap->lock);
  drain(heap, {platform::thread_token(), true});
  empty_bins(heap);
  release_empty(heap, platform::thread_token());
}

void release_unused() {
  for (Heap* heap = threads(); heap != nullptr; heap = heap->next) post_all(heap);
  for (Heap* heap = threads(); heap != nullptr; heap = heap->next) empty(heap);
  for (Heap* heap = shared_heaps(); heap != nullptr; heap = heap->next) empty(heap);
  bool nobodys = true;
  for (Heap* heap = threads(); heap != nullptr; heap = heap->next) nobodys &= heap->ownership.drop();
  if (inconsistent()) return;
  if (g_arena.figures().in_use != 0) {
    g_arena.purge(0);
    return;
  }
  g_realm.release_all();
  while (g_chunks != 0 && nobodys) {
    uintptr_t chunk = g_chunks;
    g_chunks = *reinterpret_cast<uintptr_t*>(chunk);
    platform::release(chunk, kChunk);
  }
  while (SharedChunk* chunk = g_shared_chunks) {
    g_shared_chunks = chunk->next;
    platform::release(address_of(chunk), kSharedChunk);
  }
}

// ---- first-class heaps --------------------------------------------------------------------------

// The caller holds g_lock.
static Heap* make_new_shared() {
  void* memory = shared_memory();
  if (memory == nullptr) return nullptr;
  Heap* heap = new (memory) Heap;
  heap->shared = true;
  heap->number = ++g_last_number;
  heap->delayed.do_without();
  heap->next = g_shared.load();
  if (heap->next != nullptr) heap->next->previous = heap;
  g_shared.store(heap);
  return heap;
}

Heap* make_shared() {
  LockGuard guard(g_lock);
  Heap* heap = take_spare();
  if (heap == nullptr) heap = make_new_shared();
  if (heap != nullptr) heap->life = next_life();
  return heap;
}

static bool keep_as_spare(Heap* heap) {
  LockGuard guard(g_lock);
  bool keep = g_spare_count < kMostSpares;
  if (keep) add_spare(heap);
  return keep;
}

static void forget_shared(Heap* heap) {
  LockGuard guard(g_lock);
  if (heap->previous != nullptr)
    heap->previous->next = heap->next;
  else
    g_shared.store(heap->next);
  if (heap->next != nullptr) heap->next->previous = heap->previous;
  free_shared_memory(heap);
}

void retire_shared(Heap* heap) {
  if (!keep_as_spare(heap)) forget_shared(heap);
}

Walk::Walk(ThreadToken token) : token_(token), holds_(g_lock.try_acquire(token)) {}

Walk::~Walk() {
  if (holds_) g_lock.release();
}

// What a heap's memory says of its number holds for ever: it is never unmapped, reads as zero when it went back, and
// has another number when it is a heap again.
bool Walk::let_go() {
  constexpr unsigned kMostPauses = 1000;
  g_lock.release();
  for (unsigned pause = 0; g_fork_waits.load(std::memory_order_relaxed) && pause != kMostPauses; ++pause)
    platform::back_off(pause);
  holds_ = g_lock.acquire_within(kForkPatienceMs, token_);
  return holds_ && at_ != nullptr && at_->number == number_;
}

bool Walk::stay() { return let_go(); }

Heap* Walk::next() {
  if (!holds_) return nullptr;
  const bool is_there = at_ != nullptr && let_go();
  if (!holds_) return nullptr;
  Heap* heap = is_there ? at_->next : g_shared.load();
  while (heap != nullptr && heap->number >= number_) heap = heap->next;
  if (heap != nullptr) number_ = heap->number;
  return at_ = heap;
}

bool acquire_for_fork(uint64_t patience_ms) {
  g_fork_waits.store(true, std::memory_order_relaxed);
  const bool acquired = g_lock.acquire_within(patience_ms, kForkToken);
  g_fork_waits.store(false, std::memory_order_relaxed);
  return acquired;
}

// Lists are right from their heads on, forwards; a piece of memory may have been taken from the chunk and not counted.
void put_in_order() {
  g_chunk_left = 0;
  Heap* previous = nullptr;
  for (Heap* heap = g_shared.load(); heap != nullptr; heap = heap->next) {
    heap->previous = previous;
    previous = heap;
  }
  find_spares();
}

void go_back_to(Heap* threads, Heap* shared_heaps) {
  g_threads.store(threads, std::memory_order_relaxed);
  g_cursor.store(nullptr, std::memory_order_relaxed);
  for (Heap* heap = threads; heap != nullptr; heap = heap->next) heap->cursor.store(nullptr, std::memory_order_relaxed);
  g_shared.store(shared_heaps);
  g_shared_chunks = nullptr;
  g_chunk_left = 0;
  Heap* previous = nullptr;
  for (Heap* heap = shared_heaps; heap != nullptr; heap = heap->next) {
    heap->next = heap->next_at_fork;
    heap->previous = previous;
    previous = heap;
  }
  find_spares();
}

}  // namespace rh::registry
