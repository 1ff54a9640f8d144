// The public C interface.
#include "reheap/reheap.h"

#include <errno.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "entry/describe.h"
#include "entry/options.h"
#include "entry/profiling.h"
#include "entry/rules.h"
#include "heap/idle.h"
#include "heap/limit.h"
#include "heap/relief.h"
#include "heap/sampled.h"
#include "heap/stats.h"
#include "heap/tags.h"
#include "platform/platform.h"
#include "platform/report.h"

using namespace rh;

namespace {

[[noreturn]] RH_COLD void fail_no_heap(rh_heap* handle, const char* function) {
  Text message;
  message << function << " of invalid heap ";
  message.hex(address_of(handle)) << ": it was destroyed, or never made";
  fatal(message);
}

// The public name of a heap is opaque; inside it is what it is: a heap of the realm's, or a region.
template <typename OfHeap, typename OfRegion>
RH_INLINE decltype(auto) inside(rh_heap* handle, const char* function, OfHeap of_heap, OfRegion of_region) {
  Heap* heap = shared::find(address_of(handle));
  if (RH_LIKELY(heap != nullptr)) return of_heap(heap);
  Region* region = regions::of_handle(address_of(handle));
  if (RH_UNLIKELY(region == nullptr)) fail_no_heap(handle, function);
  return of_region(region);
}

template <typename OfAny> RH_INLINE decltype(auto) inside(rh_heap* handle, const char* function, OfAny of_any) {
  return inside(handle, function, of_any, of_any);
}

Account& account_of(Heap* heap) { return heap->account; }
Account& account_of(Region* region) { return region->account(); }

template <typename Of> rh_heap_stats stats_of(Of* of, size_t in_use, size_t blocks) {
  const Account& account = account_of(of);
  rh_heap_stats all = {};
  all.in_use = in_use;
  all.blocks = blocks;
  all.held = account.held();
  all.held_peak = account.peak();
  all.limit = account.limit();
  all.refused = account.refused();
  return all;
}

rh_heap_stats heap_stats(Heap* heap) {
  const shared::Figures figures = shared::figures(heap);
  return stats_of(heap, figures.in_use, figures.blocks);
}

rh_heap_stats heap_stats(Region* region) {
  const Region::Figures figures = region->figures();
  return stats_of(region, figures.in_use, figures.blocks);
}

// How a step of a walk ended.
enum class Visited : uint8_t { some, all, stopped, refused };

rh_heap* outside(regions::Made made) {
  if (made.failure != regions::Failure::none)
    g_foreign.set_errno(made.failure == regions::Failure::invalid ? EINVAL : ENOMEM);
  return made.region != nullptr ? reinterpret_cast<rh_heap*>(made.region->handle) : nullptr;
}

rh_heap* outside(Heap* heap) {
  if (heap == nullptr) return static_cast<rh_heap*>(rules::out_of_memory());
  return reinterpret_cast<rh_heap*>(shared::handle_of(heap));
}

bool valid_alignment(size_t alignment) {
  if (is_power_of_two(alignment) && alignment <= kMaxAlignment) return true;
  g_foreign.set_errno(EINVAL);
  return false;
}

size_t at_least_block(size_t alignment) { return alignment < kBlockAlign ? kBlockAlign : alignment; }

// As much of it as the caller knows.
template <typename Stats> void fill(Stats* stats, const Stats& all) {
  __builtin_memcpy(stats, &all, all.struct_size < sizeof(all) ? all.struct_size : sizeof(all));
}

rh_tag_stats tag_stats(tags::Tag tag, const stats::TagFigures& figures, size_t struct_size) {
  rh_tag_stats all = {};
  all.struct_size = struct_size;
  all.name = tags::name_of(tag);
  all.in_use = figures.in_use;
  all.blocks = figures.blocks;
  all.held = figures.held;
  if (tag == tags::kUntagged) return all;
  const Account& account = tags::account_of(tag);
  all.held_peak = account.peak();
  all.limit = account.limit();
  all.refused = account.refused();
  return all;
}

size_t all_os_calls() {
  size_t total = 0;
  for (size_t kind = 0; kind < static_cast<size_t>(platform::OsCall::count); ++kind)
    total += platform::os_calls(static_cast<platform::OsCall>(kind));
  return total;
}

}  // namespace

extern "C" {

void* rh_malloc(size_t size) noexcept { return rules::allocate(size); }

void* rh_calloc(size_t count, size_t size) noexcept { return rules::allocate_zeroed(count, size); }

void* rh_realloc(void* block, size_t size) noexcept { return rules::reallocate(block, size); }

void* rh_aligned_alloc(size_t alignment, size_t size) noexcept {
  return valid_alignment(alignment) ? rules::allocate_aligned(alignment, size) : nullptr;
}

void* rh_aligned_realloc(void* block, size_t alignment, size_t size) noexcept {
  return valid_alignment(alignment) ? rules::reallocate_aligned(block, alignment, size) : nullptr;
}

size_t rh_expand(void* block, size_t size) noexcept { return rules::expand(block, size); }

size_t rh_alloc_batch(size_t size, void** blocks, size_t count) noexcept {
  return rules::allocate_many(size, blocks, count);
}

void rh_free(void* block) noexcept { rules::free(block); }

void rh_free_sized(void* block, size_t size) noexcept { rules::free_sized(block, size); }

void rh_free_aligned_sized(void* block, size_t, size_t size) noexcept { rules::free_sized(block, size); }

void rh_free_batch(void* const* blocks, size_t count) noexcept {
  for (size_t at = 0; at < count; ++at) rules::free(blocks[at]);
}

size_t rh_usable_size(const void* block) noexcept { return rules::usable_size(block); }

size_t rh_good_size(size_t size) noexcept {
  if constexpr (kHardened) return hardened::good_size(size);
  return good_size(size);
}

RH_AT_START bool rh_owns(const void* pointer) noexcept {
  if constexpr (kHardened)
    if (hardened::is_empty_block(pointer)) return true;
  return owns(pointer) || regions::find(pointer) != nullptr;
}

rh_heap* rh_heap_create(void) noexcept {
  start();
  return outside(shared::create());
}

rh_heap* rh_heap_create_bound(void) noexcept {
  start();
  return outside(create_bound_heap());
}

rh_heap* rh_heap_create_in(void* memory, size_t size) noexcept {
  start();
  own_heap();  // so that forks are heard of
  return outside(regions::make_in(memory, size));
}

rh_heap* rh_heap_create_near(const void* code, size_t size) noexcept {
  start();
  own_heap();
  return outside(regions::make_near(code, size));
}

void rh_heap_reset(rh_heap* heap) noexcept {
  inside(heap, "rh_heap_reset", [](Heap* of) { reset_heap(of); }, [](Region* of) { of->reset(); });
}

void rh_heap_destroy(rh_heap* heap) noexcept {
  if (heap == nullptr) return;
  inside(heap, "rh_heap_destroy", [](Heap* of) { destroy_heap(of); }, [](Region* of) { regions::destroy(of); });
}

void* rh_heap_malloc(rh_heap* heap, size_t size) noexcept {
  auto of_heap = [=](Heap* from) {
    if constexpr (!kHardened)
      if (void* block = allocate_in_fast(from, size)) return block;
    return rules::heap_allocate(from, kBlockAlign, size, false);
  };
  return inside(heap, "rh_heap_malloc", of_heap,
                [=](Region* from) { return rules::region_allocate(from, kBlockAlign, size, false); });
}

// The heap is looked up first: a wrong one ends the process, whatever else is wrong.
static void* allocate_in_any(rh_heap* heap, const char* function, size_t alignment, size_t size, bool zeroed) {
  const size_t least = at_least_block(alignment);
  auto of_heap = [=](Heap* from) {
    return valid_alignment(alignment) ? rules::heap_allocate(from, least, size, zeroed) : nullptr;
  };
  auto of_region = [=](Region* from) {
    return valid_alignment(alignment) ? rules::region_allocate(from, least, size, zeroed) : nullptr;
  };
  return inside(heap, function, of_heap, of_region);
}

void* rh_heap_calloc(rh_heap* heap, size_t count, size_t size) noexcept {
  size_t bytes = 0;
  if (!rules::product(count, size, &bytes)) bytes = SIZE_MAX;  // which is refused
  return allocate_in_any(heap, "rh_heap_calloc", kBlockAlign, bytes, true);
}

void* rh_heap_aligned_alloc(rh_heap* heap, size_t alignment, size_t size) noexcept {
  return allocate_in_any(heap, "rh_heap_aligned_alloc", alignment, size, false);
}

void* rh_heap_realloc(rh_heap* heap, void* block, size_t size) noexcept {
  return inside(heap, "rh_heap_realloc", [=](auto* of) { return rules::heap_reallocate(of, block, size); });
}

size_t rh_heap_alloc_batch(rh_heap* heap, size_t size, void** blocks, size_t count) noexcept {
  return inside(heap, "rh_heap_alloc_batch",
                [=](auto* of) { return rules::heap_allocate_many(of, size, blocks, count); });
}

rh_heap* rh_heap_of(const void* pointer) noexcept {
  if (Heap* heap = rules::heap_of(pointer)) return reinterpret_cast<rh_heap*>(shared::handle_of(heap));
  const Region* region = regions::find(pointer);
  return region != nullptr ? reinterpret_cast<rh_heap*>(region->handle) : nullptr;
}

size_t rh_heap_trim(rh_heap* heap) noexcept {
  return inside(
      heap, "rh_heap_trim", [](Heap* of) { return idle::trim_heap(of); }, [](Region* of) { return of->trim(); });
}

bool rh_heap_walk(rh_heap* heap, rh_visit_fn visit, void* context) noexcept {
  shared::Walk walk;
  Region::Walk in_region;
  auto visit_all = [=](const auto& step) {
    for (size_t at = 0; at < step.count; ++at)
      if (!visit(step.found[at].block, step.found[at].size, context)) return Visited::stopped;
    return step.count == step.kAtOnce ? Visited::some : Visited::all;
  };
  auto of_heap = [&](Heap* of) { return shared::walk_on(of, &walk) ? visit_all(walk) : Visited::refused; };
  auto of_region = [&](Region* of) {
    of->walk_on(&in_region);
    return visit_all(in_region);
  };
  Visited visited = Visited::some;
  // Each time anew: `visit` may have destroyed the heap, against the rules.
  while (visited == Visited::some) visited = inside(heap, "rh_heap_walk", of_heap, of_region);
  if (visited == Visited::refused) g_foreign.set_errno(EPERM);
  return visited == Visited::all;
}

void rh_heap_limit(rh_heap* heap, size_t hard) noexcept {
  inside(heap, "rh_heap_limit", [](auto* of) -> Account& { return account_of(of); }).set_limit(hard);
}

bool rh_heap_stats_get(rh_heap* heap, rh_heap_stats* stats) noexcept {
  rh_heap_stats all = inside(heap, "rh_heap_stats_get", [](auto* of) { return heap_stats(of); });
  if (stats->struct_size == 0) return false;
  all.struct_size = stats->struct_size;
  fill(stats, all);
  return true;
}

rh_tag rh_tag_create(const char* name) noexcept {
  start();
  tags::Tag tag = tags::create(name);
  if (tag == tags::kUntagged) g_foreign.set_errno(tags::is_name(name) ? ENOMEM : EINVAL);
  return tag;
}

bool rh_tag_push(rh_tag tag) noexcept {
  start();
  return tags::push(own_heap(), tag);
}

void rh_tag_pop(void) noexcept { tags::pop(); }

rh_tag rh_tag_current(void) noexcept { return tags::in_force(); }

bool rh_tag_limit(rh_tag tag, size_t hard) noexcept {
  if (tag == tags::kUntagged || !tags::exists(tag)) {
    g_foreign.set_errno(EINVAL);
    return false;
  }
  tags::account_of(tag).set_limit(hard);
  return true;
}

size_t rh_tag_stats_get(rh_tag first, rh_tag_stats* stats, size_t count) noexcept {
  if (count == 0 || stats->struct_size == 0 || !tags::exists(first)) return 0;
  stats::Figures whole;
  stats::ByTag by_tag;
  stats::gather(&whole, &by_tag);
  const size_t size = stats->struct_size, tags = tags::count() - first;
  if (count > tags) count = tags;
  for (size_t index = 0; index < count; ++index) {
    const tags::Tag tag = first + static_cast<tags::Tag>(index);
    auto* place = reinterpret_cast<rh_tag_stats*>(reinterpret_cast<char*>(stats) + index * size);
    place->struct_size = size;
    fill(place, tag_stats(tag, by_tag[tag], size));
  }
  return count;
}

size_t rh_trim(void) noexcept { return rules::trim(); }

bool rh_limit_set(size_t soft, size_t hard) noexcept {
  auto is_possible = [](size_t bytes) { return bytes == 0 || bytes >= limit::kLeast; };
  if (!is_possible(soft) || !is_possible(hard) || (hard != 0 && soft > hard)) {
    g_foreign.set_errno(EINVAL);
    return false;
  }
  auto bound = [](size_t bytes) {
    return limit::Bound{bytes != 0 ? limit::Bound::Kind::bytes : limit::Bound::Kind::none, bytes};
  };
  start();
  limit::set({bound(soft), bound(hard), false, limit::rule().ends});
  relief::answer();
  return true;
}

bool rh_limit_get(rh_limit* limit) noexcept {
  if (limit->struct_size == 0) return false;
  limit::Figures figures = limit::figures();
  auto shown = [](size_t bytes) { return bytes != Arena::kUnlimited ? bytes : 0; };
  rh_limit all = {};
  all.struct_size = limit->struct_size;
  all.soft = shown(figures.now.limit.soft);
  all.hard = shown(figures.now.limit.hard);
  all.held = figures.now.held;
  all.soft_met = figures.soft_met;
  all.hard_met = figures.hard_met;
  fill(limit, all);
  return true;
}

rh_limit_fn rh_limit_notify(rh_limit_fn call) noexcept { return relief::listen(call); }

bool rh_stats_get(rh_stats* stats) noexcept {
  if (stats->struct_size == 0) return false;
  stats::Figures figures;
  stats::gather(&figures);
  rh_stats all = {};
  all.struct_size = stats->struct_size;
  all.reserved = figures.reserved;
  all.committed = figures.arena.committed;
  all.committed_peak = figures.arena.committed_peak;
  all.in_use = figures.in_use;
  all.spans_in_use = figures.arena.in_use;
  all.spans_in_use_peak = figures.arena.in_use_peak;
  all.free_dirty = figures.arena.dirty;
  all.metadata = figures.metadata;
  all.returned = figures.arena.returned;
  all.heaps = figures.heaps;
  all.remote_frees = figures.remote_frees;
  all.remote_batches = figures.remote_batches;
  all.slow_paths = figures.refills;
  all.os_calls = all_os_calls();
  fill(stats, all);
  return true;
}

void rh_stats_json(rh_write_fn write, void* context) noexcept {
  Text text(write, context);
  describe::statistics(text);
}

void rh_report_json(rh_write_fn write, void* context) noexcept {
  Text text(write, context);
  describe::process(text);
}

bool rh_option_set(const char* name, const char* value) noexcept {
  start();
  return options::set(name, value, options::When::running);
}

bool rh_profile_start(uint64_t every_bytes) noexcept {
  start();
  if (kHardened || every_bytes > profile::kMostEvery) return false;
  profiling::start(every_bytes);
  return true;
}

void rh_profile_stop(void) noexcept { sampled::stop(); }

bool rh_profile_write(const char* path) noexcept { return profiling::write(path); }

const char* rh_version(void) noexcept { return describe::version(); }

}  // extern "C"
