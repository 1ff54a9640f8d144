#include "blocks.h"

#ifdef _WIN32
#include <windows.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "support/pattern.h"

namespace heap_stress {

namespace {

Break g_break = Break::nothing;
std::atomic<unsigned> g_occasions{0};

// A block's contents for as long as this lives.
class Contents {
 public:
  explicit Contents(const Block& block) : block_(block), bytes(static_cast<unsigned char*>(block.heap->hold(block))) {
    if (!bytes) fail("cannot be held", block);
  }
  ~Contents() { block_.heap->let_go(block_); }
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

 private:
  const Block& block_;

 public:
  unsigned char* const bytes;
};

void check_size(const Block& block) {
  const std::size_t size = block.heap->size_of(block) + breaks(Break::size);
  if (block.heap->knows_exact_size() ? size != block.size : size < block.size) fail("has another size", block, size);
}

// As far as `size`, which is less than the block's where it has shrunk.
void check_contents(const Block& block, const unsigned char* bytes, std::size_t size, const char* what) {
  if (contract::intact(bytes, size, block.seed)) return;
  for (std::size_t part = 1; part <= size; ++part)
    if (!contract::intact(bytes, part, block.seed)) fail(what, block, part - 1);
}

void settle(const Block& block, std::size_t zero_from) {
  const Contents contents(block);
  if (reinterpret_cast<std::uintptr_t>(contents.bytes) % block.heap->alignment(block) != 0)
    fail("is not aligned", block);
  if (zero_from < block.size && breaks(Break::zero)) contents.bytes[zero_from] = 1;
  if (zero_from < block.size && !contract::all_zero(contents.bytes + zero_from, block.size - zero_from))
    fail("is not zero", block, zero_from);
  contract::fill(contents.bytes, block.size, block.seed);
  check_size(block);
}

}  // namespace

void set_break(Break what) { g_break = what; }

bool breaks(Break what) { return g_break == what && ++g_occasions % 2000 == 0; }

void flip_a_byte(const Block& block) {
  const Contents contents(block);
  contents.bytes[0] ^= 0x10;
}

void fail(const char* what, const Block& block, std::size_t at) {
  unsigned long error = 0;
#ifdef _WIN32
  error = GetLastError();
#endif
  std::fprintf(stderr, "stress: %s: block %p of %zu bytes %s (%zu, error %lu)\n", block.heap->name(), block.handle,
               block.size, what, at, error);
  std::fflush(stderr);
#ifdef _WIN32
  TerminateProcess(GetCurrentProcess(), 1);
#endif
  std::_Exit(1);
}

void make(Block& block, Heap& heap, std::size_t size, std::uint64_t seed, bool zeroed) {
  block = {&heap, nullptr, size, seed};
  zeroed = zeroed && heap.can_zero();
  block.handle = heap.make(block, zeroed);
  if (!block.handle) fail("was refused", block);
  settle(block, zeroed ? 0 : size);
}

void resize(Block& block, std::size_t size, bool zeroed) {
  check(block, "changed before it was resized");
  const std::size_t before = block.size;
  zeroed = zeroed && block.heap->zeroes_growth();
  void* const handle = block.heap->resize(block, size, zeroed);
  if (!handle) fail("was not resized", block, size);
  block.handle = handle;
  block.heap = block.heap->heir();
  block.size = size;
  if (breaks(Break::resize)) flip_a_byte(block);
  {
    const Contents contents(block);
    check_contents(block, contents.bytes, std::min(before, size), "changed while it was resized");
  }
  settle(block, zeroed ? std::min(before, size) : size);
}

void try_in_place(Block& block, std::size_t size) {
  check(block, "changed before it was resized in place");
  const std::size_t before = block.size;
  if (block.heap->resize_in_place(block, size)) block.size = size;
  const Contents contents(block);
  check_contents(block, contents.bytes, std::min(before, block.size), "changed in place");
  contract::fill(contents.bytes, block.size, block.seed);
  check_size(block);
}

void check(const Block& block, const char* when) {
  check_size(block);
  const Contents contents(block);
  check_contents(block, contents.bytes, block.size, when);
}

void drop(Block& block) {
  check(block, "changed before it was freed");
  if (!block.heap->drop(block)) fail("was not freed", block);
  block = {};
}

}  // namespace heap_stress
