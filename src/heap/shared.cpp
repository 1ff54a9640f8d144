#include "heap/shared.h"

#include "heap/large.h"
#include "heap/refill.h"
#include "heap/registry.h"
#include "heap/retained.h"
#include "heap/slab_lists.h"
#include "heap/spans.h"

namespace rh::shared {

namespace {

// The first live block in the slab or large block `span` behind `block`, which may be null.
void* first_live(Span* span, const void* block) {
  uintptr_t start = g_realm.address(span);
  if (span->kind.load() == SpanKind::large) return block == nullptr ? reinterpret_cast<void*>(start) : nullptr;
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

// Not one by one: all processors write to that count.
void count_freed(Heap* heap, size_t bytes) {
  heap->freed += bytes;
  if (heap->freed < kUnitSize) return;
  retained::add_freed(heap->freed);
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
    if (inconsistent()) return;
    for (size_t index = 0; index < size_class::kCount; ++index) {
      // Until it leaves the list of heaps others may look into it.
      heap->bins[index] = nullptr;
      Span* current = take_current(heap, static_cast<SizeClass>(index));
      if (current != nullptr) destroy_slab(current);
      while (Span* slab = pop_available(heap, static_cast<SizeClass>(index))) destroy_slab(slab);
    }
    while (Span* slab = heap->full.pop_front()) destroy_slab(slab);
    ThreadToken token = platform::thread_token();
    while (Span* span = heap->large.first()) large::free_listed(heap, span, token);
    spans::give_back_all(heap, token);
  }
  registry::forget_shared(heap);
}

void give_back_empty(Heap* heap, ThreadToken token) {
  if (inconsistent()) return;
  empty_bins(heap);
  release_empty(heap, token);
}

void trim(Heap* heap) {
  ThreadToken token = platform::thread_token();
  LockGuard guard(heap->lock, token);
  give_back_empty(heap, token);
}

void* next_block(Heap* heap, const void* block) {
  LockGuard guard(heap->lock);
  if (inconsistent()) return nullptr;
  Span* span = block == nullptr ? g_realm.first() : slab::head(g_realm.span_of(block));
  for (Realm::Run run = g_realm.run_from(span); !run.empty(); run = g_realm.run_from(run.end)) {
    for (span = run.first; span < run.end; ++span, block = nullptr) {
      if (!is_of(heap, span)) continue;
      if (void* next = first_live(span, block)) return next;
    }
  }
  return nullptr;
}

Block* take(Heap* heap, SizeClass size_class, size_t size, bool zeroed) {
  ThreadToken token = platform::thread_token();
  LockGuard guard(heap->lock, token);
  if (inconsistent()) return nullptr;
  Block* block = pop(heap, size_class);
  if (block == nullptr) {
    heap->token.store(token);
    block = refill(heap, size_class);
  }
  if (zeroed && block != nullptr) clear(block, heap, size_class, size);
  return block;
}

void list_large(Heap* heap, Span* span) {
  LockGuard guard(heap->lock);
  if (inconsistent()) return;
  span->owner.store(heap);
  heap->large.push_back(span);
}

void free_large(Span* span) {
  Heap* heap = span->owner.load();
  ThreadToken token = platform::thread_token();
  LockGuard guard(heap->lock, token);
  if (inconsistent()) return;
  count_freed(heap, Units{span->units}.bytes());
  large::free_listed(heap, span, token);
}

void free(Heap* heap, Span* slab, Block* block) {
  LockGuard guard(heap->lock);
  // Here every free comes by, so that the notes of such a heap are complete.
  slab::note_free(slab, block);
  count_freed(heap, slab::properties(slab).size);
  if (!inconsistent() && slab::free_local(slab, block)) review(heap, slab, {platform::thread_token(), true});
}

Heap* heap_of(const Span* span) {
  Heap* owner = owner_of(span);
  return without_notes(owner) == owner && owner->shared ? owner : nullptr;
}

}  // namespace rh::shared
