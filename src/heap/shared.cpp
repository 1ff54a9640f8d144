#include "heap/shared.h"

#include "heap/idle.h"
#include "heap/large.h"
#include "heap/registry.h"

namespace rh::shared {

namespace {

SizeClass class_for(size_t alignment, size_t size) {
  return static_cast<SizeClass>(size_class::aligned(size, alignment));
}

Block* take(Heap* heap, SizeClass size_class, bool zeroed) {
  LockGuard guard(heap->lock);
  if (torn()) return nullptr;
  Block* block = pop(heap, size_class);
  if (block == nullptr) {
    heap->token.store(platform::thread_token());
    block = refill(heap, size_class);
  }
  if (block == nullptr || !zeroed) return block;
  size_t size =
      heap->bin_zero[size_class] ? sizeof(Block) : size_class::kProperties[size_class].size;
  __builtin_memset(block, 0, size);
  return block;
}

void* allocate_small(Heap* heap, SizeClass size_class, size_t size, bool zeroed) {
  Block* block = take(heap, size_class, zeroed);
  if (block == nullptr && idle::reclaim()) block = take(heap, size_class, zeroed);
  return noted(block, size_class, size);
}

void* allocate_large(Heap* heap, size_t alignment, size_t size, bool zeroed) {
  Span* span = large::allocate_span(size, alignment,
                                    zeroed ? large::preferred_for_zero(size) : Prefer::warm);
  if (span == nullptr) return nullptr;
  if (zeroed) large::clear(span, size);
  LockGuard guard(heap->lock);
  if (torn()) return reinterpret_cast<void*>(g_realm.address(span));
  span->owner.store(heap);
  heap->large.push_back(span);
  return reinterpret_cast<void*>(g_realm.address(span));
}

// The first live block in the slab or large block `span` behind `block`, which may be null.
void* first_live(Span* span, const void* block) {
  uintptr_t start = g_realm.address(span);
  if (span->kind.load() == SpanKind::large) {
    return block == nullptr ? reinterpret_cast<void*>(start) : nullptr;
  }
  size_t size = slab::properties(span).size;
  size_t first = block == nullptr ? 0 : (address_of(block) - start) / size + 1;
  for (size_t index = first, end = span->carved.load(); index < end; ++index) {
    void* next = reinterpret_cast<void*>(start + index * size);
    if (slab::is_live(span, next, index * size)) return next;
  }
  return nullptr;
}

bool is_of(const Heap* heap, const Span* span) {
  SpanKind kind = span->kind.load();
  return (kind == SpanKind::slab || kind == SpanKind::large) && span->owner.load() == heap;
}

void destroy_slab(Span* slab) {
  slab::finish(slab);
  g_arena.free(slab);
}

void destroy_slabs(SpanList& list) {
  while (Span* slab = list.pop_front()) destroy_slab(slab);
}

// What is told less often are calls to one place from all processors.
void note_freed(Heap* heap, size_t bytes) {
  heap->freed += bytes;
  if (heap->freed < kUnitSize) return;
  idle::note_freed(heap->freed);
  heap->freed = 0;
}

}  // namespace

Heap* create() { return registry::make_shared(); }

uintptr_t handle_of(const Heap* heap) { return address_of(heap) + heap->life; }

Heap* find(uintptr_t handle) {
  size_t life = handle % platform::kPageSize;
  Heap* heap = reinterpret_cast<Heap*>(handle - life);
  return life != 0 && heap != nullptr && heap->life == life ? heap : nullptr;
}

void destroy(Heap* heap) {
  {
    LockGuard guard(heap->lock);
    if (torn()) return;
    for (size_t index = 0; index < size_class::kCount; ++index) {
      // Until it leaves the list of heaps others may look into it.
      heap->bins[index] = nullptr;
      Span* current = take_current(heap, static_cast<SizeClass>(index));
      if (current != nullptr) destroy_slab(current);
      destroy_slabs(heap->available[index]);
    }
    destroy_slabs(heap->full);
    while (Span* span = heap->large.pop_front()) {
      span->owner.store(nullptr);
      large::release(span);
    }
    give_back_stash(heap, platform::thread_token());
  }
  registry::forget_shared(heap);
  idle::note_free();
}

// The caller holds heap.lock.
static void give_back_empty(Heap* heap, ThreadToken token) {
  if (torn()) return;
  empty_bins(heap);
  release_empty(heap, token);
}

void trim(Heap* heap) {
  ThreadToken token = platform::thread_token();
  LockGuard guard(heap->lock, token);
  give_back_empty(heap, token);
}

bool collect(Heap* heap, ThreadToken token) {
  if (!heap->lock.try_acquire(token)) return false;
  give_back_empty(heap, token);
  heap->lock.release();
  return true;
}

void* next_block(Heap* heap, const void* block) {
  LockGuard guard(heap->lock);
  if (torn()) return nullptr;
  Span* span = block == nullptr ? g_realm.first() : slab::head(g_realm.span_of(block));
  for (Realm::Run run = g_realm.run_from(span); !run.empty(); run = g_realm.run_from(run.end)) {
    for (span = run.first; span < run.end; ++span, block = nullptr) {
      if (!is_of(heap, span)) continue;
      if (void* next = first_live(span, block)) return next;
    }
  }
  return nullptr;
}

void* allocate(Heap* heap, size_t alignment, size_t size, bool zeroed) {
  if (alignment <= kUnitSize && size <= kMaxSmall) {
    SizeClass size_class = class_for(alignment, size);
    if (size_class < size_class::kCount) {
      void* block = allocate_small(heap, size_class, size, zeroed);
      if (block != nullptr || !torn()) return block;
    }
  }
  return allocate_large(heap, alignment, size, zeroed);
}

void free(Heap* heap, Span* slab, Block* block) {
  {
    LockGuard guard(heap->lock);
    // Here every free comes by, so that the notes of such a heap are complete.
    slab::note_free(slab, block);
    note_freed(heap, slab::properties(slab).size);
    if (!torn() && slab::free_local(slab, block))
      review(heap, slab, {platform::thread_token(), true});
  }
  idle::note_free();
}

void forget_large(Span* span) {
  Heap* heap = span->owner.load();
  LockGuard guard(heap->lock);
  if (!torn()) heap->large.remove(span);
  span->owner.store(nullptr);
}

Heap* heap_of(const void* block) {
  Span* span = g_realm.span_of(block);
  SpanKind kind = span->kind.load();
  if (kind == SpanKind::slab || kind == SpanKind::interior) span = slab::head(span);
  Heap* owner = owner_of(span);
  return owner != kNobody && owner->shared ? owner : nullptr;
}

}  // namespace rh::shared
