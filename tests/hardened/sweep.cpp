// The same kinds of misuse at every size, place and delay, where misuse.cpp tries a few: each in a process of its own.
//
//   sweep [typed]   says of each kind at how many it was noticed, and the first at which it was not; exits with 0 when
//                   there is none of those. typed: of blocks that have a type
#include <dlfcn.h>
#include <string.h>

#include <algorithm>
#include <new>
#include <thread>
#include <vector>

#include "system.h"

namespace {

using Bytes = volatile unsigned char*;

template <typename T> T* hidden(T* pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

// Where blocks come from: malloc, or what Clang's allocation tokens call in its place.
void* (*g_typed)(size_t size, size_t token) = nullptr;
Bytes make(size_t size) { return static_cast<Bytes>(hidden(g_typed != nullptr ? g_typed(size, 3) : malloc(size))); }
void release(Bytes block) { free(hidden(const_cast<unsigned char*>(block))); }
void change(Bytes at) { *at = static_cast<unsigned char>(*at ^ 0xa5); }

constexpr size_t kMostSize = 200;

// Enough blocks that their slabs are taken from again while half of them are free; the one in the middle is not the
// first of its slab: before that lies what nobody uses.
constexpr size_t kMiddle = 1000;
size_t gap_before(const std::vector<Bytes>& blocks, size_t at) {
  return static_cast<size_t>(blocks[at] - blocks[at - 1]);
}
size_t least_gap(const std::vector<Bytes>& blocks) {
  size_t least = SIZE_MAX;
  for (size_t at = 1; at < blocks.size(); ++at) least = std::min(least, gap_before(blocks, at));
  return least;
}
std::vector<Bytes> row(size_t size) {
  std::vector<Bytes> blocks(2 * kMiddle);
  for (Bytes& block : blocks) block = make(size);
  std::sort(blocks.begin(), blocks.end());
  size_t at = kMiddle;
  while (gap_before(blocks, at) > least_gap(blocks)) ++at;
  blocks.erase(blocks.begin(), blocks.begin() + static_cast<ptrdiff_t>(at - kMiddle));
  return blocks;
}

// All that is free of these is taken again.
void use_again(const std::vector<Bytes>& blocks, size_t size) {
  for (Bytes block : blocks) release(block);
  for (size_t count = 0; count < 2 * blocks.size(); ++count) make(size);
}

void overflow(size_t size) {
  std::vector<Bytes> blocks = row(size);
  change(blocks[kMiddle] + size);
  for (Bytes block : blocks) release(block);
}

void overflow_further(size_t size) {
  std::vector<Bytes> blocks = row(size);
  change(blocks[kMiddle] + size + 7);
  for (Bytes block : blocks) release(block);
}

void underflow(size_t size) {
  std::vector<Bytes> blocks = row(size);
  change(blocks[kMiddle] - 1);
  for (Bytes block : blocks) release(block);
}

// Every byte in turn that was the block's.
void write_after_free(size_t number) {
  const size_t size = number % kMostSize + 1, at = number / kMostSize % size;
  std::vector<Bytes> blocks = row(size);
  Bytes block = blocks[kMiddle];
  release(block);
  change(block + at);
  blocks.erase(blocks.begin() + kMiddle);
  use_again(blocks, size);
}

// Of the block and of what lies behind it, until the next.
void read_after_free(size_t size) {
  std::vector<Bytes> blocks = row(size);
  memset(const_cast<unsigned char*>(blocks[kMiddle]), 0xee, size);
  release(blocks[kMiddle]);
  for (size_t at = 0; at < size; ++at)
    if (blocks[kMiddle][at] != 0) return;
  abort();
}

void free_twice_after(size_t others) {
  std::vector<Bytes> blocks = row(40);
  release(blocks[1500]);
  for (size_t count = 0; count < others; ++count) release(blocks[count]);
  release(blocks[1500]);
}

void free_twice_elsewhere(size_t others) {
  std::vector<Bytes> blocks = row(40);
  release(blocks[1500]);
  for (size_t count = 0; count < others; ++count) release(blocks[count]);
  std::thread([&] { release(blocks[1500]); }).join();
}

void free_elsewhere_twice(size_t others) {
  std::vector<Bytes> blocks = row(40);
  std::thread([&] {
    release(blocks[1500]);
    for (size_t count = 0; count < others; ++count) release(blocks[count]);
  }).join();
  release(blocks[1500]);
}

void realloc_freed(size_t size) {
  std::vector<Bytes> blocks = row(size);
  release(blocks[kMiddle]);
  hidden(realloc(const_cast<unsigned char*>(blocks[kMiddle]), size + size % 3));
}

// Realloc leaves tails that are looked at like others.
void overflow_after_realloc(size_t size) {
  Bytes block = static_cast<Bytes>(hidden(realloc(const_cast<unsigned char*>(make(size)), size + 1)));
  change(block + size + 1);
  release(block);
}

void overflow_before_realloc(size_t size) {
  Bytes block = make(size);
  change(block + size);
  hidden(realloc(const_cast<unsigned char*>(block), size + 1));
}

void new_and_free(size_t size) { free(hidden(::operator new(size))); }
void array_and_delete(size_t size) { ::operator delete(hidden(::operator new[](size))); }
void realloc_of_new(size_t size) { hidden(realloc(hidden(::operator new(size)), size + 1)); }
void wrong_size(size_t size) { ::operator delete(hidden(::operator new(size)), size + 1); }
void free_inside(size_t offset) { release(row(kMostSize)[kMiddle] + offset); }

// The end of a slab's memory and the next one's first block.
void overflow_out_of_slab(size_t size) {
  std::vector<Bytes> blocks = row(size);
  // Of neighbours those that are furthest apart: a guard lies there, or where two slabs meet less than a block.
  size_t widest = 1;
  for (size_t at = 1; at < blocks.size(); ++at)
    if (gap_before(blocks, at) > gap_before(blocks, widest)) widest = at;
  const size_t gap = gap_before(blocks, widest);
  for (size_t byte = size; gap > least_gap(blocks) && byte <= gap; ++byte) change(blocks[widest - 1] + byte);
  for (Bytes block : blocks) release(block);
}

// What a program reads of free blocks, and writes to another: it knows where they are, but no number.
struct Words {
  uintptr_t link, mark;
};
template <typename Forge> void forge(size_t size, Forge change_words) {
  std::vector<Bytes> blocks = row(size);
  for (size_t at = 0; at < 1000; at += 2) release(blocks[at]);
  auto words = [&](size_t at) { return reinterpret_cast<volatile Words*>(blocks[at]); };
  change_words(words(100), words(200), blocks[1001]);
  for (size_t count = 0; count < 2 * blocks.size(); ++count) make(size);
}

void point_at_a_block(size_t size) {
  forge(size,
        [](volatile Words* free, volatile Words*, Bytes target) { free->link = reinterpret_cast<uintptr_t>(target); });
}

void copy_the_words(size_t size) {
  forge(size, [](volatile Words* free, volatile Words* other, Bytes) {
    free->link = other->link;
    free->mark = other->mark;
  });
}

void move_the_link(size_t size) {
  forge(size, [size](volatile Words* free, volatile Words*, Bytes) { free->link = free->link ^ size; });
}

// It knows all but the mark: the key of the links follows from one that is known to be the last.
void mark_a_block(size_t size) {
  forge(size, [](volatile Words* free, volatile Words*, Bytes target) {
    reinterpret_cast<volatile Words*>(target)->mark = free->mark;
    reinterpret_cast<volatile Words*>(target)->link = free->link;
    free->link = free->link ^ reinterpret_cast<uintptr_t>(free) ^ reinterpret_cast<uintptr_t>(target);
  });
}

struct Kind {
  const char* name;
  void (*commit)(size_t number);
  size_t first, last, step;
};

constexpr Kind kKinds[] = {
    {"overflow", overflow, 1, kMostSize, 1},
    {"overflow_further", overflow_further, 1, kMostSize, 1},
    {"underflow", underflow, 1, kMostSize, 1},
    {"write_after_free", write_after_free, 0, 40 * kMostSize, 37},
    {"read_after_free", read_after_free, 1, kMostSize, 1},
    {"free_twice_after", free_twice_after, 0, 1000, 7},
    {"free_twice_elsewhere", free_twice_elsewhere, 0, 1000, 19},
    {"free_elsewhere_twice", free_elsewhere_twice, 0, 1000, 19},
    {"realloc_freed", realloc_freed, 1, kMostSize, 1},
    {"overflow_after_realloc", overflow_after_realloc, 1, kMostSize, 1},
    {"overflow_before_realloc", overflow_before_realloc, 1, kMostSize, 1},
    {"new_and_free", new_and_free, 1, kMostSize, 1},
    {"array_and_delete", array_and_delete, 1, kMostSize, 1},
    {"realloc_of_new", realloc_of_new, 1, kMostSize, 1},
    {"wrong_size", wrong_size, 1, kMostSize, 1},
    {"free_inside", free_inside, 1, kMostSize - 1, 1},
    {"overflow_out_of_slab", overflow_out_of_slab, 8, kMostSize, 16},
    {"point_at_a_block", point_at_a_block, 16, kMostSize, 8},
    {"copy_the_words", copy_the_words, 16, kMostSize, 8},
    {"move_the_link", move_the_link, 16, kMostSize, 8},
    {"mark_a_block", mark_a_block, 16, kMostSize, 8},
    {"overflow", overflow, 1008, 1024, 2},
    {"underflow", underflow, 1008, 1024, 2},
    {"realloc_freed", realloc_freed, 1008, 1024, 2},
    {"overflow_before_realloc", overflow_before_realloc, 1008, 1024, 2},
    {"overflow", overflow, 2000, 32760, 7690},
    {"underflow", underflow, 2000, 32760, 7690},
    {"realloc_freed", realloc_freed, 2000, 32760, 7690},
    {"overflow_before_realloc", overflow_before_realloc, 2000, 32760, 7690},
};

// Says how many of them were noticed. False when any was not.
bool try_all(const Kind& kind) {
  size_t tried = 0, noticed = 0, missed = 0;
  for (size_t number = kind.first; number <= kind.last; number += kind.step) {
    const End end = run_forked(true, [&] {
      kind.commit(number);
      return 0;
    });
    if (!end.by_failure && noticed == tried) missed = number;
    noticed += end.by_failure;
    ++tried;
  }
  printf("%-24s %4zu to %5zu: %zu of %zu", kind.name, kind.first, kind.last, noticed, tried);
  if (noticed != tried) printf(", not at %zu", missed);
  printf("\n");
  return noticed == tried;
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && strcmp(arguments[1], "typed") == 0) {
    g_typed = reinterpret_cast<void* (*)(size_t, size_t)>(dlsym(RTLD_DEFAULT, "__alloc_token_malloc"));
    if (g_typed == nullptr) return 2;
  }
  bool all_noticed = true;
  for (const Kind& kind : kKinds) all_noticed = try_all(kind) && all_noticed;
  return all_noticed ? 0 : 1;
}
