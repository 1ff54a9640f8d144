#include "books.h"

#include <map>
#include <set>
#include <utility>

#include "heap/heap.h"
#include "heap/registry.h"
#include "heap/remote.h"
#include "heap/spans.h"
#include "scheduler.h"

namespace rh::model {

namespace {

std::set<void*> held;

// What is on its way between threads arrives.
void deliver() {
  for (Heap* heap = registry::threads(); heap != nullptr; heap = heap->next) post_all(heap);
  for (int round = 0; round < 2; ++round) {
    for (Heap* heap = registry::threads(); heap != nullptr; heap = heap->next) {
      LockGuard guard(heap->lock);
      drain(heap, {platform::thread_token(), false});
      if (heap->span_inbox.load() != nullptr) spans::give_back_all(heap, platform::thread_token());
    }
  }
}

// The blocks of a list, each of which lies in the slab and nowhere else.
size_t count_list(const Span* slab, Block* top, std::set<void*>* seen) {
  uintptr_t start = g_realm.address(slab);
  size_t size = slab::properties(slab).size;
  size_t count = 0;
  for (Block* block = top; block != nullptr; block = block->next, ++count) {
    uintptr_t offset = address_of(block) - start;
    MODEL_NEED(offset % size == 0 && offset / size < slab->carved.load());
    if (!seen->insert(block).second) fail("a block is free twice");
    if (held.count(block) != 0) fail("a block in use is free too");
  }
  return count;
}

size_t count_held(const Span* slab) {
  uintptr_t start = g_realm.address(slab);
  uintptr_t end = start + Units{slab->units}.bytes();
  auto from = held.lower_bound(reinterpret_cast<void*>(start));
  auto to = held.lower_bound(reinterpret_cast<void*>(end));
  return static_cast<size_t>(std::distance(from, to));
}

void check_slab(const Span* slab) {
  const Heap* owner = owner_of(slab);
  MODEL_NEED(owner != nullptr);
  std::set<void*> seen;
  size_t freed = static_cast<uint16_t>(slab->armed.load() - slab->countdown.load());
  size_t free_count = count_list(slab, slab->free, &seen);
  size_t returned = count_list(slab, slab::returned(slab), &seen);
  SizeClass size_class = slab::class_of(slab);
  bool is_current = owner->current[size_class] == slab;
  size_t in_bin = is_current ? count_list(slab, owner->bins[size_class], &seen) : 0;
  size_t outstanding = slab::outstanding(slab);
  MODEL_NEED(free_count == static_cast<uint16_t>(slab->free_count + freed));
  MODEL_NEED(returned == slab->others.returned());
  MODEL_NEED(outstanding + free_count + returned + slab::hollow_blocks(slab) == slab->carved.load());
  if (in_bin + count_held(slab) < outstanding) fail("a block is lost");
  MODEL_NEED(in_bin + count_held(slab) == outstanding);
}

// Of all units that were ever made, by what they are.
std::map<SpanKind, size_t> count_units() {
  std::map<SpanKind, size_t> units;
  const Span* end = g_realm.first() + Units::holding(g_realm.committed()).count;
  for (const Span* span = g_realm.first(); span < end;) {
    SpanKind kind = span->kind.load();
    if (kind == SpanKind::slab) check_slab(span);
    size_t length = span->units;
    MODEL_NEED(length != 0 && kind != SpanKind::interior && kind != SpanKind::free_tail);
    MODEL_NEED(kind != SpanKind::none && kind != SpanKind::kept_tail);
    units[kind] += length;
    span += length;
  }
  return units;
}

}  // namespace

void note_held(void* block) {
  if (!held.insert(block).second) fail("a block was handed out twice");
}

void check_books() {
  deliver();
  std::map<SpanKind, size_t> units = count_units();
  size_t kept = 0;
  for (Heap* heap = registry::threads(); heap != nullptr; heap = heap->next) kept += heap->store.total().count;
  for (Heap* heap = registry::shared_heaps(); heap != nullptr; heap = heap->next) kept += heap->store.total().count;
  MODEL_NEED(units[SpanKind::kept] == kept);
  MODEL_NEED(units[SpanKind::busy] == 0);
  size_t in_use = units[SpanKind::slab] + units[SpanKind::large] + kept;
  MODEL_NEED(Units{in_use}.bytes() == g_arena.figures().in_use);
  MODEL_NEED(Units{units[SpanKind::free_dirty]}.bytes() == g_arena.figures().dirty);
}

}  // namespace rh::model
