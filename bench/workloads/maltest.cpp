/* A torture test after Cygwin's of its malloc, with the contents checked: random sizes up to 512 KiB skewed small,
 * every page touched, 6 % of the operations are reallocs, blocks live for a random while. Each block is read back
 * before it goes and after it moved; every fourth new one comes from calloc and has to be zero.
 *
 *   maltest THREADS
 *
 * Prints a sum over what was read back: the same for every allocator that keeps what it was given. */
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "workload.h"

namespace {

constexpr int kTotalOperations = 500'000;
constexpr std::size_t kSlots = 600;
constexpr std::size_t kReallocPercent = 6;
constexpr std::size_t kCallocEvery = 4;

struct Block {
  unsigned char* bytes = nullptr;
  std::size_t size = 0;
  unsigned char stamp = 0;
};

int threads;
std::array<std::uint64_t, MOST_THREADS> sums;

[[noreturn]] void broken(const char* what, std::size_t at) {
  std::fprintf(stderr, "maltest: %s at byte %zu\n", what, at);
  std::exit(4);
}

template <typename Visit> void each_place(std::size_t size, Visit visit) {
  for (std::size_t at = 0; at < size; at += PAGE) visit(at);
}

void write(Block& block, unsigned char stamp) {
  block.stamp = stamp;
  each_place(block.size, [&](std::size_t at) { block.bytes[at] = stamp; });
  block.bytes[block.size - 1] = stamp;
}

std::uint64_t read_byte(const Block& block, std::size_t at) {
  if (block.bytes[at] != block.stamp) broken("lost contents", at);
  return block.bytes[at];
}

/* What was written is still there; gives a sum over it. */
std::uint64_t read(const Block& block) {
  std::uint64_t sum = block.size == 0 ? 0 : read_byte(block, block.size - 1);
  each_place(block.size, [&](std::size_t at) { sum += read_byte(block, at); });
  return sum;
}

/* The part that both sizes have keeps its contents. */
std::uint64_t resize(Block& block, std::size_t size) {
  std::uint64_t sum = 0;
  const std::size_t before = block.size;
  block.bytes = static_cast<unsigned char*>(must(std::realloc(block.bytes, size)));
  block.size = size;
  each_place(std::min(before, size), [&](std::size_t at) { sum += read_byte(block, at); });
  if (0 < before && before <= size) sum += read_byte(block, before - 1);
  return sum;
}

void take_zeroed(Block& block, std::size_t size) {
  block.bytes = static_cast<unsigned char*>(must(std::calloc(size, 1)));
  block.size = size;
  each_place(size, [&](std::size_t at) {
    if (block.bytes[at] != 0) broken("calloc's block is not zero", at);
  });
}

void take(Block& block, std::size_t size, Random& random) {
  if (below(&random, kCallocEvery) == 0) return take_zeroed(block, size);
  block.bytes = static_cast<unsigned char*>(must(std::malloc(size)));
  block.size = size;
}

std::uint64_t change(Block& block, Random& random) {
  const std::size_t size = skewed_size(&random, 4, 19);
  std::uint64_t sum = read(block);
  if (below(&random, 100) < kReallocPercent) {
    sum += resize(block, size);
  } else {
    std::free(block.bytes);
    take(block, size, random);
  }
  write(block, static_cast<unsigned char>(1 + below(&random, 255)));
  return sum;
}

void* work(void* argument) {
  const auto number = static_cast<unsigned>(reinterpret_cast<std::intptr_t>(argument));
  Random random = random_for(number);
  std::array<Block, kSlots> blocks;
  for (int i = 0; i < kTotalOperations / threads; i++)
    sums[number] = sums[number] * 31 + change(blocks[below(&random, kSlots)], random);
  for (Block& block : blocks) std::free(block.bytes);
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  threads = thread_count(argc, argv);
  run_threads(threads, work);
  std::uint64_t sum = 0;
  for (std::uint64_t each : sums) sum = sum * 31 + each;
  std::printf("%016llx\n", static_cast<unsigned long long>(sum));
}
