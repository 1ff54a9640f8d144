#include "heap/shared.h"

#include "heap/abandoned.h"
#include "heap/accounts.h"
#include "heap/block.h"
#include "heap/guards.h"
#include "heap/large.h"
#include "heap/refill.h"
#include "heap/registry.h"
#include "heap/remote.h"
#include "heap/retained.h"
#include "heap/slab_lists.h"
#include "heap/spans.h"
#include "platform/report.h"

namespace rh::shared {

namespace {

// The first live block in the slab, large block or guarded place `span` behind `block`, which may be null.
void* first_live(Span* span, const void* block) {
  uintptr_t start = g_realm.address(span);
  if (span->kind.load() != SpanKind::slab) {
    if (block != nullptr) return nullptr;
    return span->kind.load() == SpanKind::large ? reinterpret_cast<void*>(start) : guards::start_of(span);
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
  if (kind == SpanKind::guarded) return guards::is_live(span) && guards::heap_of(span) == heap;
  return (kind == SpanKind::slab || kind == SpanKind::large) && without_notes(span->owner.load()) == heap;
}

// Whatever is still handed out.
void end_slabs(SpanList& slabs, SpanList* spans) {
  while (Span* slab = slabs.pop_front()) {
    slab::finish(slab);
    spans->push_back(slab);
  }
}

// All blocks are gone, and what was known of them. The caller holds the lock, by `token`.
void empty(Heap* heap, ThreadToken token) {
  SpanList slabs, spans;
  take_inbox(heap);
  heap->had_slabs.take_each([&](SizeClass size_class) {
    heap->bins[size_class] = nullptr;
    if (Span* current = take_current(heap, size_class)) slabs.push_back(current);
    end_slabs(heap->available[size_class], &spans);
  });
  end_slabs(heap->full, &spans);
  end_slabs(slabs, &spans);
  forget_sparse(heap);
  spans::give_all(heap, &spans, token);
  while (Span* span = heap->large.first()) large::free_listed(heap, span, token);
  heap->fork_state = ForkState::whole;
}

// Until another thread has taken it over its owner's tenant stands in it.
bool has_ended(Heap* owner, Tenant tenant) {
  if (owner->tenant.load_acquire() != tenant) return true;
  if (!owner->ownership.try_acquire()) return false;
  abandoned::note_tenant(owner);
  owner->ownership.release();
  return true;
}

[[noreturn]] RH_COLD void fail_bound(const Heap* heap) {
  Text message;
  message << "allocation from heap ";
  message.hex(handle_of(heap)) << ", which is bound to another thread";
  fatal(message);
}

// Blocks are made a page at a time from the first on, and an empty slab stays with its class: who makes such a heap
// will use it.
void expect_use(Heap* heap) {
  for (uint8_t& uses : heap->uses) uses = kSeldom;
}

// The caller holds heap.lock.
void bind(Heap* heap, Heap* own) {
  heap->token.store(own->token.load());
  heap->home.store(own);
  heap->tenant.store_release(own->tenant.load());
}

// The caller holds heap.lock.
void push_large(Heap* heap, Span* span) {
  span->owner.store(with_note(heap, kListed));
  heap->large.push_back(span);
}

void count_slab(Figures* figures, const Span* slab) {
  const size_t outstanding = slab::outstanding_at_most_all(slab);
  figures->blocks += outstanding;
  figures->in_use += outstanding * slab::properties(slab).size;
}

void count_slabs(Figures* figures, const SpanList& slabs) {
  for (const Span* slab = slabs.first(); slab != nullptr; slab = slab->next) count_slab(figures, slab);
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

Heap* create_bound(Heap* own) {
  Heap* heap = registry::make_shared();
  if (heap == nullptr) return nullptr;
  LockGuard guard(heap->lock);
  expect_use(heap);
  bind(heap, own);
  return heap;
}

bool disown_if_left(Heap* heap, ThreadToken token) {
  if (inconsistent() || !is_bound(heap) || is_mine(heap)) return false;
  if (!has_ended(heap->home.load(), heap->tenant.load())) return false;
  abandoned::take_over(heap, token);
  return true;
}

bool take_up_if_left(Heap* heap, Heap* own) {
  LockGuard guard(heap->lock);
  if (!disown_if_left(heap, platform::thread_token())) return false;
  bind(heap, own);
  return true;
}

void take_up(Heap* heap, Heap* own) {
  if (!take_up_if_left(heap, own) && !inconsistent() && !is_mine(heap)) fail_bound(heap);
}

uintptr_t handle_of(const Heap* heap) { return address_of(heap) + heap->life; }

void reset(Heap* heap) {
  ThreadToken token = platform::thread_token();
  LockGuard guard(heap->lock, token);
  if (!inconsistent()) empty(heap, token);
}

void destroy(Heap* heap) {
  {
    ThreadToken token = platform::thread_token();
    LockGuard guard(heap->lock, token);
    if (inconsistent()) return;
    // Until it leaves the list of heaps others may look into it.
    heap->tenant.store(kNoTenant);
    heap->home.store(nullptr);
    empty(heap, token);
    spans::give_back_all(heap, token);
    for (uint8_t& uses : heap->uses) uses = 0;
    heap->account.restart(0, 0, 0);
  }
  registry::retire_shared(heap);
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

// Whether the caller, who holds heap.lock, may follow what only the owner does without it.
static bool is_followed_here(Heap* heap) {
  return !inconsistent() && (!is_bound(heap) || is_mine(heap) || disown_if_left(heap, platform::thread_token()));
}

// The blocks in use of one slab, large block or guarded place, from `walk->from` on.
static void find_in(const Heap* heap, Span* span, Walk* walk) {
  auto add = [walk](void* block, Span* of, BlockKind kind) {
    const BlockAt at{block, of, kind};
    walk->found[walk->count++] = {block, kHardened ? at.requested_size() : at.usable_size()};
    walk->from = address_of(block) + 1;
  };
  const uintptr_t start = g_realm.address(span);
  if (span->kind.load() != SpanKind::slab) {
    const bool guarded = span->kind.load() == SpanKind::guarded;
    void* block = guarded ? guards::start_of(span) : reinterpret_cast<void*>(start);
    if (walk->from <= address_of(block)) add(block, span, guarded ? BlockKind::guarded : BlockKind::large);
    return;
  }
  const SizeClass size_class = slab::class_of(span);
  const size_t size = slab::properties(span).size;
  const bool current = heap->current[size_class] == span;
  const slab::BlockSet free = slab::free_blocks_of(span, current ? heap->bins[size_class] : nullptr,
                                                   current ? heap->bins[passed_bin(size_class)] : nullptr);
  size_t index = walk->from > start ? (walk->from - start + size - 1) / size : 0;
  for (const size_t end = span->carved.load(); index < end && walk->count != Walk::kAtOnce; ++index)
    if (!free.has(static_cast<unsigned>(index)))
      add(reinterpret_cast<void*>(start + index * size), span, BlockKind::small);
}

bool walk_on(Heap* heap, Walk* walk) {
  const ThreadToken token = platform::thread_token();
  LockGuard guard(heap->lock, token);
  if (!is_followed_here(heap)) return false;
  drain(heap, {token, true});
  walk->count = 0;
  if (walk->span == nullptr) walk->span = g_realm.first();
  for (Realm::Run run = g_realm.run_from(walk->span); !run.empty(); run = g_realm.run_from(run.end)) {
    for (walk->span = run.first; walk->span < run.end; ++walk->span) {
      if (is_of(heap, walk->span)) find_in(heap, walk->span, walk);
      if (walk->count == Walk::kAtOnce) return true;
    }
  }
  return true;
}

// The caller holds the lock, by `token`.
static slab::Taken take_locked(Heap* heap, SizeClass size_class, ThreadToken token) {
  if (inconsistent()) return {};
  if (Block* block = pop(heap, size_class)) return {block, false};
  heap->token.store(token);
  return refill(heap, size_class);
}

slab::Taken take(Heap* heap, SizeClass size_class) {
  if (is_mine(heap)) {
    if (Block* block = pop(heap, size_class)) return {block, false};
  }
  ThreadToken token = platform::thread_token();
  LockGuard guard(heap->lock, token);
  return take_locked(heap, size_class, token);
}

size_t take_many(Heap* heap, SizeClass size_class, void** blocks, size_t count) {
  constexpr size_t kAtOnce = 256;  // others wait for the lock meanwhile
  ThreadToken token = platform::thread_token();
  size_t taken = 0;
  while (taken < count) {
    LockGuard guard(heap->lock, token);
    if (inconsistent() || (is_bound(heap) && !is_mine(heap))) return taken;
    const size_t end = count - taken < kAtOnce ? count : taken + kAtOnce;
    for (; taken < end; ++taken) {
      Block* block = take_locked(heap, size_class, token).blocks;
      if (block == nullptr) return taken;
      blocks[taken] = block;
    }
  }
  return taken;
}

bool list_large(Heap* heap, Span* span) {
  LockGuard guard(heap->lock);
  if (inconsistent()) return true;
  if (!accounts::charge(heap, Units{span->units})) return false;
  push_large(heap, span);
  return true;
}

void relist_large(Heap* heap, Span* span) {
  LockGuard guard(heap->lock);
  if (!inconsistent()) push_large(heap, span);
}

void unlist_large(Span* span) {
  Heap* heap = large::lister_of(span);
  LockGuard guard(heap->lock);
  if (inconsistent() || !large::has_owner(span)) return;
  heap->large.remove(span);
  span->owner.store(kNobody);
}

// A heap whose lock was a terminated thread's has given up what it had while the lock was waited for (mend.cpp).
void free_large(Span* span) {
  Heap* heap = large::lister_of(span);
  {
    ThreadToken token = platform::thread_token();
    LockGuard guard(heap->lock, token);
    if (inconsistent()) return;
    count_freed(heap, Units{span->units}.bytes());
    if (large::has_owner(span)) return large::free_listed(heap, span, token);
  }
  large::free(span);
}

void free(Heap* heap, Span* slab, Block* block) {
  LockGuard guard(heap->lock);
  // Here every free comes by, so that the notes of such a heap are complete.
  slab::note_free(slab, block);
  count_freed(heap, slab::properties(slab).size);
  if (inconsistent() || owner_of(slab) != heap) return;
  if (free_own(heap, slab, block)) review(heap, slab, {platform::thread_token(), true});
}

Figures figures(Heap* heap) {
  const guards::Figures guarded = guards::figures_of(heap);
  Figures figures = {guarded.bytes, guarded.live};
  LockGuard guard(heap->lock);
  if (inconsistent()) return figures;
  for (size_t index = 0; index < size_class::kCount; ++index) {
    if (heap->current[index] != nullptr) count_slab(&figures, heap->current[index]);
    count_slabs(&figures, heap->available[index]);
  }
  count_slabs(&figures, heap->full);
  for (const Span* span = heap->large.first(); span != nullptr; span = span->next, ++figures.blocks)
    figures.in_use += Units{span->units}.bytes();
  return figures;
}

Heap* heap_of(const Span* span) {
  Heap* owner = without_notes(span->owner.load_acquire());
  if (owner == nullptr) return span->kind.load() == SpanKind::guarded ? guards::heap_of(span) : nullptr;
  bool is_threads = span->kind.load() == SpanKind::large && !large::has_owner(span);
  return !is_threads && is_first_class(owner) && !owner->sampled ? owner : nullptr;
}

RH_AT_START Heap* heap_beside(const Span* span) {
  Heap* heap = heap_of(span);
  return heap != nullptr && is_bound(heap) && !is_mine(heap) ? nullptr : heap;
}

}  // namespace rh::shared
