// Heaps of their own: made, filled, churned and destroyed.
//
//   heaps KIND LIBRARY BLOCKS ROUNDS    KIND: bound, shared, thread (of reheap); heap, own (of mimalloc); arena
//
// Some heaps at a time, so that the clock is read seldom; BLOCKS blocks of 64 bytes in each. Prints the median over the
// rounds of nanoseconds a heap for create and destroy, and a block for fill and churn (one freed, one taken). What has
// no heap frees its blocks one by one instead; the arena, which cannot free, does not churn.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kSize = 64;
constexpr std::size_t kMostBlocksAtATime = 8000;
constexpr std::size_t kMostHeaps = 64;

// What a kind of heap can do. Without `make` the blocks are the calling thread's.
struct Functions {
  void* (*make)() = nullptr;
  void* (*take)(void* heap, std::size_t size) = nullptr;
  void* (*take_own)(std::size_t size) = nullptr;
  void (*free)(void* block) = nullptr;
  void (*destroy)(void* heap) = nullptr;
};

using Arena = std::pmr::monotonic_buffer_resource;

struct Heap {
  void* made = nullptr;
  std::optional<Arena> arena;
  std::vector<void*> blocks;
};

// A resource's users know it by this type alone.
std::pmr::memory_resource* volatile arena_in_use;

Functions functions;
std::vector<Heap> heaps;
bool is_arena;

template <typename Function> void find(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  if (*function) return;
  std::fprintf(stderr, "heaps: %s is not there\n", name);
  std::exit(2);
}

void look_up(const std::string& kind, void* library) {
  const bool reheap = kind == "bound" || kind == "shared" || kind == "thread";
  find(library, reheap ? "rh_free" : "mi_free", &functions.free);
  if (kind == "thread" || kind == "own") return find(library, reheap ? "rh_malloc" : "mi_malloc", &functions.take_own);
  const char* make = kind == "bound" ? "rh_heap_create_bound" : "rh_heap_create";
  find(library, reheap ? make : "mi_heap_new", &functions.make);
  find(library, reheap ? "rh_heap_malloc" : "mi_heap_malloc", &functions.take);
  find(library, reheap ? "rh_heap_destroy" : "mi_heap_destroy", &functions.destroy);
}

// ---- the steps; callgrind tells them apart by name ----------------------------------------------

__attribute__((noinline)) void create() {
  for (Heap& heap : heaps) {
    if (is_arena) heap.arena.emplace();
    if (functions.make) heap.made = functions.make();
  }
}

__attribute__((noinline)) void fill_arena(Heap& heap) {
  arena_in_use = &*heap.arena;
  std::pmr::memory_resource* const arena = arena_in_use;
  for (void*& block : heap.blocks) *static_cast<char*>(block = arena->allocate(kSize, 16)) = 1;
}

__attribute__((noinline)) void fill() {
  for (Heap& heap : heaps) {
    if (is_arena)
      fill_arena(heap);
    else if (functions.take_own)
      for (void*& block : heap.blocks) *static_cast<char*>(block = functions.take_own(kSize)) = 1;
    else
      for (void*& block : heap.blocks) *static_cast<char*>(block = functions.take(heap.made, kSize)) = 1;
  }
}

// In an order in which each block's turn comes, and neighbours seldom follow each other.
__attribute__((noinline)) void churn() {
  constexpr std::size_t kStride = 7919;
  for (Heap& heap : heaps) {
    const std::size_t count = heap.blocks.size();
    for (std::size_t step = 0, at = 0; step < count; ++step, at = (at + kStride) % count) {
      functions.free(heap.blocks[at]);
      void* const block = functions.take ? functions.take(heap.made, kSize) : functions.take_own(kSize);
      *static_cast<char*>(heap.blocks[at] = block) = 1;
    }
  }
}

__attribute__((noinline)) void destroy() {
  for (Heap& heap : heaps) {
    if (is_arena)
      heap.arena.reset();
    else if (functions.destroy)
      functions.destroy(heap.made);
    else
      for (void* block : heap.blocks) functions.free(block);
  }
}

double time_of(void (*step)(), std::size_t count) {
  const auto start = std::chrono::steady_clock::now();
  step();
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
  return taken.count() / static_cast<double>(count);
}

double median(std::vector<double>& figures) {
  std::nth_element(figures.begin(), figures.begin() + static_cast<long>(figures.size() / 2), figures.end());
  return figures[figures.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: heaps KIND LIBRARY BLOCKS ROUNDS\n");
    return 2;
  }
  const std::string kind = argv[1];
  const std::size_t blocks = std::strtoul(argv[3], nullptr, 10);
  const std::size_t rounds = std::strtoul(argv[4], nullptr, 10);
  is_arena = kind == "arena";
  void* const library = is_arena ? nullptr : dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (!is_arena && !library) {
    std::fprintf(stderr, "heaps: %s\n", dlerror());
    return 2;
  }
  if (!is_arena) look_up(kind, library);
  heaps = std::vector<Heap>(std::clamp<std::size_t>(kMostBlocksAtATime / blocks, 1, kMostHeaps));
  for (Heap& heap : heaps) heap.blocks.resize(blocks);
  std::vector<double> figures[4];
  for (std::size_t round = 0; round < rounds; ++round) {
    figures[0].push_back(time_of(create, heaps.size()));
    figures[1].push_back(time_of(fill, heaps.size() * blocks));
    figures[2].push_back(is_arena ? 0 : time_of(churn, heaps.size() * blocks));
    figures[3].push_back(time_of(destroy, heaps.size()));
  }
  for (std::vector<double>& of_step : figures) std::printf("%.2f ", median(of_step));
  std::printf("%zu\n", heaps.size());
}
