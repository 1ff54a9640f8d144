// Every byte of every block, checked whenever the block is met again.
//
//   stress THREADS [SECONDS [SEED]]
//
// Each of THREADS workers makes, resizes, frees and hands blocks over through slots that all share,
// and now and then ends and is born again, leaving its blocks to the others. What a block holds
// follows from a seed of its own, so a byte that changed, a block given twice or a calloc that is
// not zero is found at the latest when the block is freed. The same SEED makes the same decisions
// in each worker; how the workers meet is the machine's affair.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "heap_names.h"
#include "support/pattern.h"

namespace {

using contract::mix;
using contract::Random;

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;
constexpr std::size_t kSlots = 1024;
constexpr std::size_t kOwn = 200;         // blocks a worker keeps
constexpr std::size_t kLargeAtOnce = 24;  // blocks above kLarge, in the whole process
constexpr std::size_t kLarge = 256 * KiB;

[[noreturn]] void fail(const char* what, const void* block, std::size_t size, std::size_t at) {
  std::fprintf(stderr, "stress: %s: block %p of %zu bytes, at byte %zu\n", what, block, size, at);
  std::_Exit(1);
}

// ---- a block and what it has to hold -----------------------------------------------------------

struct Block {
  unsigned char* bytes = nullptr;
  std::size_t size = 0;
  std::uint64_t seed = 0;
};

std::uint64_t word_of(std::uint64_t seed, std::size_t at) { return (seed + at) * 0x9e3779b97f4a7c15u; }

void fill(const Block& block) {
  std::size_t at = 0;
  for (; at + 8 <= block.size; at += 8) {
    const std::uint64_t word = word_of(block.seed, at);
    std::memcpy(block.bytes + at, &word, 8);
  }
  const std::uint64_t word = word_of(block.seed, at);
  if (at < block.size) std::memcpy(block.bytes + at, &word, block.size - at);
}

void check(const Block& block, std::size_t size, const char* what) {
  std::size_t at = 0;
  for (; at + 8 <= size; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, block.bytes + at, 8);
    if (word != word_of(block.seed, at)) fail(what, block.bytes, block.size, at);
  }
  const std::uint64_t word = word_of(block.seed, at);
  if (at < size && std::memcmp(block.bytes + at, &word, size - at) != 0) {
    fail(what, block.bytes, block.size, at);
  }
}

void check_zero(const Block& block) {
  for (std::size_t at = 0; at < block.size; ++at) {
    if (block.bytes[at] != 0) fail("calloc is not zero", block.bytes, block.size, at);
  }
}

void check_made(const Block& block, std::size_t alignment) {
  if (!block.bytes) fail("refused", block.bytes, block.size, 0);
  if (reinterpret_cast<std::uintptr_t>(block.bytes) % alignment != 0) {
    fail("not aligned", block.bytes, block.size, alignment);
  }
  if (stress::usable(block.bytes) < block.size) fail("usable size is less", block.bytes, block.size, 0);
}

// ---- what the workers share --------------------------------------------------------------------

struct Slot {
  std::mutex lock;
  Block block;
};

struct Shared {
  Slot slots[kSlots];
  std::atomic<std::size_t> large{0};
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> operations{0};
  std::atomic<std::uint64_t> births{0};

  Block exchange(std::size_t index, Block block) {
    const std::lock_guard guard(slots[index].lock);
    std::swap(block, slots[index].block);
    return block;
  }
};

// ---- a worker ----------------------------------------------------------------------------------

class Worker {
 public:
  Worker(Shared& shared, std::uint64_t seed) : shared_(shared), random_(seed), own_(kOwn) {}

  // One life: as many operations as it was born for.
  void live(std::size_t operations) {
    for (std::size_t done = 0; done < operations && !shared_.stop; ++done) step();
    shared_.operations += operations;
    leave();
  }

 private:
  void step() {
    Block& block = own_[random_.below(own_.size())];
    if (!block.bytes) return make(block);
    switch (random_.below(8)) {
    case 0:
    case 1:
      return resize(block);
    case 2:
    case 3:
      block = shared_.exchange(random_.below(kSlots), block);
      return;
    default:
      return drop(block);
    }
  }

  // From 1 byte to some MiB: each further doubling is about half as likely as the one before.
  std::size_t pick_size() {
    std::size_t most = 32;
    while (most < 4 * MiB && random_.below(8) < 5) most *= 2;
    const std::size_t size = 1 + random_.below(most);
    return size >= kLarge && shared_.large >= kLargeAtOnce ? 1 + random_.below(KiB) : size;
  }

  void make(Block& block) {
    block.size = pick_size();
    block.seed = random_.next();
    std::size_t alignment = 1;
    const std::size_t way = random_.below(10);
    if (way < 6) {
      block.bytes = static_cast<unsigned char*>(stress::make(block.size));
    } else if (way < 9) {
      const std::size_t count = 1 + random_.below(7);
      block.size = (block.size + count - 1) / count * count;
      block.bytes = static_cast<unsigned char*>(stress::make_zeroed(count, block.size / count));
      if (block.bytes) check_zero(block);
    } else {
      alignment = std::size_t{1} << (4 + random_.below(random_.one_in(10) ? 14 : 9));
      block.bytes = static_cast<unsigned char*>(stress::make_aligned(alignment, block.size));
    }
    check_made(block, alignment);
    note_large(block, 1);
    fill(block);
  }

  void resize(Block& block) {
    check(block, block.size, "changed before realloc");
    note_large(block, -1);
    const std::size_t old = block.size;
    const std::size_t wanted = random_.one_in(2) ? pick_size() : near(old);
    block.bytes = static_cast<unsigned char*>(stress::resize(block.bytes, wanted));
    block.size = wanted;
    check_made(block, 1);
    check(block, old < wanted ? old : wanted, "lost by realloc");
    note_large(block, 1);
    fill(block);
  }

  std::size_t near(std::size_t size) { return 1 + size / 2 + random_.below(size + 1); }

  void drop(Block& block) {
    check(block, block.size, "changed before free");
    note_large(block, -1);
    stress::drop(block.bytes);
    block = {};
  }

  // Half of what it holds goes to the others, the rest is freed.
  void leave() {
    for (Block& block : own_) {
      if (block.bytes && random_.one_in(2)) block = shared_.exchange(random_.below(kSlots), block);
      if (block.bytes) drop(block);
    }
  }

  void note_large(const Block& block, int change) {
    if (block.size >= kLarge) shared_.large += static_cast<std::size_t>(change);
  }

  Shared& shared_;
  Random random_;
  std::vector<Block> own_;
};

// A place among the workers: one life after the other, each in a thread of its own.
void lives(Shared& shared, std::uint64_t seed) {
  Random random(mix(seed));
  while (!shared.stop) {
    const std::size_t operations = random.one_in(2) ? 100 + random.below(1000) : 5000;
    ++shared.births;
    std::thread([&shared, operations, life = random.next()] { Worker(shared, life).live(operations); }).join();
  }
}

void drain(Shared& shared) {
  for (Slot& slot : shared.slots) {
    if (!slot.block.bytes) continue;
    check(slot.block, slot.block.size, "changed before the end");
    stress::drop(slot.block.bytes);
  }
}

long number(const char* text, const char* what, long least, long most) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (end == text || *end != 0 || value < least || value > most) {
    std::fprintf(stderr, "stress: %s is %s, not a number from %ld to %ld\n", what, text, least, most);
    std::exit(2);
  }
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: stress THREADS [SECONDS [SEED]]\n");
    return 2;
  }
  const long threads = number(argv[1], "THREADS", 1, 1024);
  const long duration = argc > 2 ? number(argv[2], "SECONDS", 1, 1000000) : 1;
  const long seed = argc > 3 ? number(argv[3], "SEED", 0, 2000000000) : 1;
  std::printf("stress %ld %ld %ld\n", threads, duration, seed);
  std::fflush(stdout);

  const auto shared = std::make_unique<Shared>();
  std::vector<std::thread> places;
  for (long at = 0; at < threads; ++at) {
    places.emplace_back(lives, std::ref(*shared), mix(static_cast<std::uint64_t>(seed * 4096 + at)));
  }
  std::this_thread::sleep_for(std::chrono::seconds(duration));
  shared->stop = true;
  for (std::thread& place : places) place.join();
  drain(*shared);
  std::printf("%llu operations in %llu lives, all contents as they should be\n",
              static_cast<unsigned long long>(shared->operations.load()),
              static_cast<unsigned long long>(shared->births.load()));
  return 0;
}
