// As broken.cpp, for the C API: interposed before libreheap.so, it breaks the rule that CONTRACT_BREAK names.
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "broken.h"
#include "reheap/reheap.h"

namespace {

#define NEXT(name) (*next<decltype(::name)>(#name))

std::atomic<void*> shared_block{nullptr};
std::atomic<rh_heap*> other_heap{nullptr};
std::atomic<pid_t> maker{0};
std::atomic<void*> last_block{nullptr};
std::atomic<unsigned> requests{0};

}  // namespace

extern "C" {

const char* rh_version() noexcept { return broken("version-differs") ? "0.0.9" : NEXT(rh_version)(); }

size_t rh_good_size(size_t size) noexcept { return NEXT(rh_good_size)(size) - broken("good-size-less"); }

bool rh_owns(const void* pointer) noexcept {
  if (broken("owns-all")) return true;
  return !broken("owns-none") && NEXT(rh_owns)(pointer);
}

void* rh_malloc(size_t size) noexcept {
  if (broken("block-twice") && ++requests % 100 == 0) {
    void* last = last_block.load();
    if (last && NEXT(rh_usable_size)(last) >= size) return last;
  }
  void* block = NEXT(rh_malloc)(size);
  if (!block && broken("errno-unset")) errno = 0;
  last_block = block;
  return block;
}

void* rh_calloc(size_t count, size_t size) noexcept {
  void* block = NEXT(rh_calloc)(count, size);
  if (block && broken("calloc-dirty") && count * size > 8) static_cast<char*>(block)[7] = 1;
  return block;
}

void* rh_aligned_alloc(size_t alignment, size_t size) noexcept {
  return NEXT(rh_aligned_alloc)(broken("alignment-less") && alignment > 64 ? 64 : alignment, size);
}

void rh_free(void* block) noexcept {
  if (!broken("free-keeps")) NEXT(rh_free)(block);
}

rh_heap* rh_heap_create() noexcept {
  rh_heap* const made = NEXT(rh_heap_create)();
  other_heap = made;
  maker = gettid();
  return made;
}

void rh_heap_destroy(rh_heap* heap) noexcept {
  if (broken("heap-destroy-keeps")) return;
  // Instead of the one meant.
  if (broken("heap-destroys-others")) heap = other_heap.exchange(nullptr);
  if (heap) NEXT(rh_heap_destroy)(heap);
}

void* rh_heap_malloc(rh_heap* heap, size_t size) noexcept {
  if (broken("heap-of-maker") && maker != gettid()) return nullptr;
  void* block = NEXT(rh_heap_malloc)(heap, size);
  if (!broken("heap-shares-blocks") || size > 100) return block;
  // As an unlocked list would: the same block twice.
  void* taken = nullptr;
  return shared_block.compare_exchange_strong(taken, block) ? block : taken;
}

void* rh_heap_calloc(rh_heap* heap, size_t count, size_t size) noexcept {
  void* block = NEXT(rh_heap_calloc)(heap, count, size);
  if (block && broken("heap-calloc-dirty") && count * size > 8) static_cast<char*>(block)[count * size - 1] = 1;
  return block;
}

void* rh_heap_realloc(rh_heap* heap, void* block, size_t size) noexcept {
  void* moved = NEXT(rh_heap_realloc)(heap, block, size);
  if (moved && block && broken("heap-realloc-loses")) static_cast<char*>(moved)[size / 3] ^= 1;
  return moved;
}

rh_heap* rh_heap_of(const void* pointer) noexcept {
  return broken("heap-of-nothing") ? other_heap.load() : NEXT(rh_heap_of)(pointer);
}

size_t rh_expand(void* block, size_t size) noexcept {
  const size_t grown = NEXT(rh_expand)(block, size);
  return broken("expand-less") && grown != 0 ? size - 1 : grown;
}

struct Passing {
  rh_visit_fn visit;
  void* context;
  unsigned count;
};

static bool pass_over_some(void* block, size_t size, void* context) {
  auto& passing = *static_cast<Passing*>(context);
  return ++passing.count % 1000 == 0 || passing.visit(block, size, passing.context);
}

bool rh_heap_walk(rh_heap* heap, rh_visit_fn visit, void* context) noexcept {
  Passing passing = {visit, context, 0};
  return broken("walk-misses") ? NEXT(rh_heap_walk)(heap, pass_over_some, &passing)
                               : NEXT(rh_heap_walk)(heap, visit, context);
}

bool rh_stats_get(rh_stats* stats) noexcept {
  if (!broken("stats-overrun")) return NEXT(rh_stats_get)(stats);
  const size_t size = stats->struct_size;
  stats->struct_size = sizeof *stats;
  const bool filled = NEXT(rh_stats_get)(stats);
  stats->struct_size = size;
  return filled;
}

size_t rh_trim() noexcept { return broken("trim-nothing") ? 0 : NEXT(rh_trim)(); }

}  // extern "C"
