// The system's heap functions, misused one way a process; and used rightly. For a program that knows nothing of reheap.
//
//   heap           all of them; exits with 0 when each misuse ended its process, and the rest was as it should be
//   heap commit N  one
#include <string.h>

#include <iterator>

#include "../system.h"

namespace {

using Bytes = unsigned char*;

HANDLE ours() { return GetProcessHeap(); }

template <typename T> T* hidden(T* pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

Bytes make(HANDLE heap, size_t size) { return static_cast<Bytes>(hidden(HeapAlloc(heap, 0, size))); }

void free_twice(size_t size) {
  void* block = make(ours(), size);
  HeapFree(ours(), 0, block);
  HeapFree(ours(), 0, block);
}

void free_inside(size_t size) { HeapFree(ours(), 0, make(ours(), size) + 16); }

void free_overflown(size_t size) {
  Bytes block = make(ours(), size);
  block[size] = static_cast<unsigned char>(block[size] ^ 1);
  HeapFree(ours(), 0, block);
}

void resize_overflown(size_t size) {
  Bytes block = make(ours(), size);
  block[size] = static_cast<unsigned char>(block[size] ^ 1);
  hidden(HeapReAlloc(ours(), 0, block, 2 * size));
}

void resize_freed(size_t size) {
  void* block = make(ours(), size);
  HeapFree(ours(), 0, block);
  hidden(HeapReAlloc(ours(), 0, block, 2 * size));
}

void free_in_another_heap(size_t size) {
  HANDLE one = HeapCreate(0, 0, 0), other = HeapCreate(0, 0, 0);
  HeapFree(other, 0, make(one, size));
}

void free_twice_in_own_heap(size_t size) {
  HANDLE heap = HeapCreate(0, 0, 0);
  void *block = make(heap, size), *rest = make(heap, size);
  HeapFree(heap, 0, block);
  HeapFree(heap, 0, block);
  HeapFree(heap, 0, rest);
}

void write_to_nothing(size_t) { *static_cast<volatile unsigned char*>(make(ours(), 0)) = 1; }

struct {
  const char* name;
  void (*commit)(size_t);
} const kCrimes[] = {
    {"HeapFree twice", free_twice},
    {"HeapFree within a block", free_inside},
    {"HeapFree after an overflow", free_overflown},
    {"HeapReAlloc after an overflow", resize_overflown},
    {"HeapReAlloc of a freed block", resize_freed},
    {"HeapFree with another heap's handle", free_in_another_heap},
    {"HeapFree twice in a heap of its own", free_twice_in_own_heap},
    {"a write to a block of no bytes", write_to_nothing},
};
constexpr size_t kSizes[] = {24, 3000, 200000};

int g_failures = 0;

void expect(bool holds, const char* what, size_t size) {
  if (holds) return;
  printf("of %zu bytes: %s does not hold\n", size, what);
  ++g_failures;
}
#define EXPECT(condition, size) expect(condition, #condition, size)

bool holds_all(Bytes block, size_t size, unsigned char value) {
  for (size_t at = 0; at < size; ++at)
    if (block[at] != value) return false;
  return true;
}

void use_rightly(HANDLE heap, size_t size) {
  Bytes block = make(heap, size);
  EXPECT(HeapSize(heap, 0, block) == size, size);
  EXPECT(HeapValidate(heap, 0, block), size);
  memset(block, 7, size);
  Bytes shorter = static_cast<Bytes>(HeapReAlloc(heap, HEAP_REALLOC_IN_PLACE_ONLY, block, size / 3));
  EXPECT(shorter == block && HeapSize(heap, 0, block) == size / 3, size);
  Bytes longer = static_cast<Bytes>(HeapReAlloc(heap, HEAP_ZERO_MEMORY, block, 3 * size));
  EXPECT(longer != nullptr && HeapSize(heap, 0, longer) == 3 * size, size);
  EXPECT(holds_all(longer, size / 3, 7) && holds_all(longer + size / 3, 3 * size - size / 3, 0), size);
  unsigned char behind = longer[3 * size];
  longer[3 * size] = static_cast<unsigned char>(behind ^ 1);
  EXPECT(!HeapValidate(heap, 0, longer), size);
  longer[3 * size] = behind;
  EXPECT(HeapValidate(heap, 0, longer) && HeapFree(heap, 0, longer), size);
  EXPECT(!HeapValidate(heap, 0, longer) && HeapSize(heap, 0, longer) == static_cast<SIZE_T>(-1), size);
}

void use_nothing_rightly() {
  void* block = make(ours(), 0);
  EXPECT(block != nullptr && HeapSize(ours(), 0, block) == 0 && HeapValidate(ours(), 0, block), 0);
  Bytes longer = static_cast<Bytes>(HeapReAlloc(ours(), HEAP_ZERO_MEMORY, block, 100));
  EXPECT(longer != nullptr && holds_all(longer, 100, 0), 0);
  void* none = HeapReAlloc(ours(), 0, longer, 0);
  EXPECT(none != nullptr && HeapSize(ours(), 0, none) == 0 && HeapFree(ours(), 0, none), 0);
  // The C runtime's functions and the heap's know each other's blocks.
  EXPECT(HeapFree(ours(), 0, hidden(malloc(100))), 100);
  free(make(ours(), 100));
}

// What lives in it goes with it.
void use_a_heap_rightly() {
  for (int round = 0; round < 20; ++round) {
    HANDLE heap = HeapCreate(0, 0, 0);
    unsigned blocks = 0, walked = 0;
    for (size_t size : kSizes) {
      use_rightly(heap, size);
      for (int count = 0; count < 20; ++count, ++blocks) memset(make(heap, size), 9, size);
    }
    PROCESS_HEAP_ENTRY entry = {};
    while (HeapWalk(heap, &entry))
      for (size_t size : kSizes) walked += (entry.wFlags & PROCESS_HEAP_ENTRY_BUSY) != 0 && entry.cbData == size;
    EXPECT(walked == blocks, blocks);
    EXPECT(HeapDestroy(heap), 0);
  }
}

int all(const char* program) {
  for (size_t crime = 0; crime < std::size(kCrimes); ++crime) {
    for (size_t size = 0; size < std::size(kSizes); ++size) {
      End end = run_again(program, "commit", std::to_string(crime * std::size(kSizes) + size), true);
      if (end.by_failure) continue;
      printf("%s of %zu bytes went unnoticed: 0x%x\n", kCrimes[crime].name, kSizes[size],
             static_cast<unsigned>(end.code));
      ++g_failures;
    }
  }
  for (size_t size : kSizes) use_rightly(ours(), size);
  use_nothing_rightly();
  use_a_heap_rightly();
  return g_failures == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return all(arguments[0]);
  size_t number = static_cast<size_t>(atoi(arguments[2]));
  kCrimes[number / std::size(kSizes)].commit(kSizes[number % std::size(kSizes)]);
  return 0;
}
