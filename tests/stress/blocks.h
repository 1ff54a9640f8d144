// Heaps behind the same few functions, and blocks that tell when they were damaged.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heap_stress {

class Heap;

struct Block {
  Heap* heap = nullptr;
  void* handle = nullptr;  // what the heap's functions take; NULL: there is no block
  std::size_t size = 0;
  std::uint64_t seed = 0;  // of its contents
};

// Each function is called for blocks of this heap alone.
class Heap {
 public:
  virtual const char* name() const = 0;
  // A handle, or NULL. The size and the seed stand in the block.
  virtual void* make(const Block& block, bool zeroed) = 0;
  // What was behind the old size reads as zero if `zeroed`. NULL: the block is as it was.
  virtual void* resize(const Block& block, std::size_t size, bool zeroed) = 0;
  virtual bool resize_in_place(const Block&, std::size_t) { return false; }
  virtual bool drop(const Block& block) = 0;
  virtual std::size_t size_of(const Block& block) = 0;
  virtual bool knows_exact_size() const { return true; }
  virtual bool can_zero() const { return true; }
  virtual bool zeroes_growth() const { return can_zero(); }
  virtual std::size_t alignment(const Block&) const { return 2 * sizeof(void*); }
  // Whose it is once it was resized.
  virtual Heap* heir() { return this; }
  // Where the contents are until they are let go.
  virtual void* hold(const Block& block) { return block.handle; }
  virtual void let_go(const Block&) {}

 protected:
  ~Heap() = default;  // trivial: threads may use shared heaps to the end of the process
};

// ---- blocks: what is wrong with one ends the process -------------------------------------------

// Spoils what was done, once in some thousand times, so that it can be seen that it is noticed.
enum class Break { nothing, contents, zero, size, resize, destroyed };
void set_break(Break what);
bool breaks(Break what);
void flip_a_byte(const Block& block);

[[noreturn]] void fail(const char* what, const Block& block, std::size_t at = 0);

void make(Block& block, Heap& heap, std::size_t size, std::uint64_t seed, bool zeroed);
void resize(Block& block, std::size_t size, bool zeroed);
// Within the memory that it has, if the heap can.
void try_in_place(Block& block, std::size_t size);
void check(const Block& block, const char* when);
// Checks it first.
void drop(Block& block);

}  // namespace heap_stress
