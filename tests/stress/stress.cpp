// Every byte of every block, checked whenever the block is met again.
//
//   stress THREADS [SECONDS [SEED]]
//
// Each of THREADS workers (worker.h) makes, resizes, frees and hands blocks over through slots that all share, and now
// and then ends and is born again, leaving its blocks to the others. What a block holds follows from a seed of its own,
// so a byte that changed, a block given twice or a calloc that is not zero is found at the latest when the block is
// freed. The same SEED makes the same decisions in each worker; how the workers meet is the machine's affair.
#ifdef STRESS_RH
#include "reheap/reheap.h"
#else
#include <malloc.h>
#endif

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "worker.h"

namespace heap_stress {
namespace {

// reheap's own names beside the system's malloc, or whatever serves malloc.
#ifdef STRESS_RH
#define ALLOCATOR(name) rh_##name
#else
#define ALLOCATOR(name) name
#endif

#if defined(STRESS_RH)
std::size_t usable_size(void* block) { return rh_usable_size(block); }
#elif defined(_WIN32)
std::size_t usable_size(void* block) { return _msize(block); }
// For _aligned_free alone on the runtime's heap; reheap takes it by any name.
void* aligned_alloc(std::size_t alignment, std::size_t size) { return _aligned_malloc(size, alignment); }
#else
std::size_t usable_size(void* block) { return malloc_usable_size(block); }
#endif

class Malloc : public Heap {
 public:
  const char* name() const override { return "malloc"; }
  bool knows_exact_size() const override { return false; }
  bool zeroes_growth() const override { return false; }
  void* make(const Block& block, bool zeroed) override {
    if (!zeroed) return ALLOCATOR(malloc)(block.size);
    std::size_t count = 7;
    while (block.size % count != 0) --count;
    return ALLOCATOR(calloc)(count, block.size / count);
  }
  void* resize(const Block& block, std::size_t size, bool) override { return ALLOCATOR(realloc)(block.handle, size); }
  bool drop(const Block& block) override {
    ALLOCATOR(free)(block.handle);
    return true;
  }
  std::size_t size_of(const Block& block) override { return usable_size(block.handle); }
};

Malloc g_malloc;

class Aligned final : public Malloc {
 public:
  const char* name() const override { return "aligned_alloc"; }
  bool can_zero() const override { return false; }
  std::size_t alignment(const Block& block) const override {
    return std::size_t{16} << (block.seed >> 8) % (block.seed % 10 == 0 ? 14 : 9);
  }
  void* make(const Block& block, bool) override { return ALLOCATOR(aligned_alloc)(alignment(block), block.size); }
  Heap* heir() override { return &g_malloc; }
};

Aligned g_aligned;
Heap* const g_heaps[] = {&g_malloc, &g_malloc, &g_malloc, &g_malloc, &g_malloc, &g_aligned};

// From 1 byte to some MiB: each further doubling is about half as likely as the one before.
std::size_t pick_size(Random& random) {
  std::size_t most = 32;
  while (most < 4 * MiB && random.below(8) < 5) most *= 2;
  return 1 + random.below(most);
}

// A place among the workers: one life after the other, each in a thread of its own.
void lives(Shared& shared, std::uint64_t seed) {
  Random random(mix(seed));
  while (!shared.stop) std::thread([&shared, life = random.next()] { Worker(shared, life).live(); }).join();
}

// What the library says of itself while the workers are at it, so that ThreadSanitizer sees it read that.
void look([[maybe_unused]] const Shared& shared) {
#ifdef STRESS_RH
  while (!shared.stop) {
    rh_stats stats = {};
    stats.struct_size = sizeof stats;
    if (!rh_stats_get(&stats)) std::abort();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
#endif
}

double number(const char* text, const char* what, double least, double most) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != 0 || value < least || value > most) {
    std::fprintf(stderr, "stress: %s is %s, not a number from %g to %g\n", what, text, least, most);
    std::exit(2);
  }
  return value;
}

void run(long threads, double seconds, long seed) {
  const std::unique_ptr<Shared> shared(new Shared{g_heaps, pick_size});
  std::vector<std::thread> places;
  for (long at = 0; at < threads; ++at)
    places.emplace_back(lives, std::ref(*shared), mix(static_cast<std::uint64_t>(seed * 4096 + at)));
  std::thread looker([&] { look(*shared); });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  shared->stop = true;
  looker.join();
  for (std::thread& place : places) place.join();
  shared->drain();
  std::printf("%lu operations in %lu lives, all contents as they should be\n", shared->operations.load(),
              shared->lives.load());
}

}  // namespace
}  // namespace heap_stress

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: stress THREADS [SECONDS [SEED]]\n");
    return 2;
  }
  using heap_stress::number;
  const auto threads = static_cast<long>(number(argv[1], "THREADS", 1, 1024));
  const double seconds = argc > 2 ? number(argv[2], "SECONDS", 0.1, 1e6) : 1;
  const auto seed = argc > 3 ? static_cast<long>(number(argv[3], "SEED", 0, 2e9)) : 1;
  std::printf("stress %ld %g %ld\n", threads, seconds, seed);
  std::fflush(stdout);
  heap_stress::run(threads, seconds, seed);
  return 0;
}
