#include "entry/darwin/census.h"

#include "heap/block.h"
#include "heap/registry.h"

namespace rh::census {

namespace {

// A list that others change leads astray, or round: it is followed for so long.
constexpr unsigned kMostFollowed = 1u << 20;

bool is_in(const Block* wanted, const Block* list) {
  for (unsigned step = 0; list != nullptr && g_realm.holds(list) && step < kMostFollowed; ++step, list = list->next)
    if (list == wanted) return true;
  return false;
}

bool is_on_its_way_to_or_from(const Heap* heap, const Block* block) {
  if (is_in(block, heap->inbox.load(std::memory_order_acquire))) return true;
  for (const Parcel& parcel : heap->parcels)
    if (is_in(block, parcel.first)) return true;
  return false;
}

// Of the blocks that one thread freed of another's the last of a batch tells of the rest in the place of its mark
// (heap/remote.cpp). Such numbers are small, and not 0.
bool may_be_message(const Block* block) { return block->mark != 0 && block->mark <= UINT32_MAX; }

bool is_message(const Block* block) {
  if (!may_be_message(block)) return false;
  for (const Heap* heap = registry::threads(); heap != nullptr; heap = heap->next)
    if (is_on_its_way_to_or_from(heap, block)) return true;
  for (const Heap* heap = registry::shared_heaps(); heap != nullptr; heap = heap->next)
    if (is_on_its_way_to_or_from(heap, block)) return true;
  return false;
}

// What is in no list of the slab's, and not among those that its owner has ready in a bin, is on its way there from
// another thread, or somebody's: blocks that were freed are marked.
void each_in_slab(Span* slab, Visit* visit, void* context) {
  const SizeClass size_class = slab::class_of(slab);
  const size_t size = slab::properties(slab).size;
  const Heap* heap = owner_of(slab);
  const bool ready = heap != nullptr && heap->current[size_class] == slab;
  const slab::BlockSet listed = slab::free_blocks_of(slab, ready ? heap->bins[size_class] : nullptr,
                                                     ready ? heap->bins[passed_bin(size_class)] : nullptr);
  const unsigned carved = slab->carved.load();
  for (unsigned index = 0; index < carved; ++index) {
    auto* block = reinterpret_cast<Block*>(g_realm.address(slab) + index * size);
    if (listed.has(index) || slab::is_marked(slab, block) || is_message(block)) continue;
    visit(block, size, context);
  }
}

}  // namespace

void each_block(Visit* visit, void* context) {
  g_realm.each_span([=](Span* span) {
    const SpanKind kind = span->kind.load();
    if (kind == SpanKind::slab) return each_in_slab(span, visit, context);
    if (kind == SpanKind::large)
      return visit(reinterpret_cast<void*>(g_realm.address(span)), Units{span->units}.bytes(), context);
    if (kind == SpanKind::guarded && guards::is_live(span))
      visit(guards::start_of(span), guards::size_of(span), context);
  });
}

}  // namespace rh::census
