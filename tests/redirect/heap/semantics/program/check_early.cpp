#include <objbase.h>
#include <oleauto.h>
#include <stdlib.h>

#include "checks.h"

namespace {

constexpr size_t kEarlySizes[] = {1, 16, 100, 1000, 5000, 70000, 600 * kKiB, 2 * kMiB};
constexpr size_t kCount = sizeof kEarlySizes / sizeof *kEarlySizes;
constexpr size_t kUses = 5;  // one block for each thing done with it later

struct Early {
  const char* name;
  HANDLE heap;
  void* blocks[kUses][kCount];
};
Early early_heaps[3] = {{"process", nullptr, {}}, {"private", nullptr, {}}, {"at most 64M", nullptr, {}}};

void* of_crt[kCount];
HLOCAL fixed_block, movable_block;
void* task_block;
BSTR string;

void tell(Line& line, const Early& early, const void* block, size_t size) {
  line.say(" size=%Iu", observed(line, [&] { return HeapSize(early.heap, 0, block); }));
  line.say(" valid=%d", observed(line, [&] { return HeapValidate(early.heap, 0, block); }));
  if (!holds(block, size, 1)) line.say(" NOT KEPT");
}

void tell_freed(Line& line, const Early& early, void* block) {
  line.say(" freed=%d", observed(line, [&] { return HeapFree(early.heap, 0, block); }));
}

void check(const Early& early, size_t index) {
  size_t size = kEarlySizes[index];
  if (early.blocks[0][index] == nullptr) {
    Line("early %s %Iu", early.name, size).say(" none");
    return;
  }
  {
    Line line("early %s %Iu", early.name, size);
    void* block = early.blocks[0][index];
    tell(line, early, block, size);
    tell_freed(line, early, block);
  }
  size_t to[] = {size / 2, size + 1, 3 * size};
  for (size_t use = 1; use <= 3; ++use) {
    Line line("early %s %Iu to %Iu", early.name, size, to[use - 1]);
    void* block = early.blocks[use][index];
    block = observed(line, [&] { return HeapReAlloc(early.heap, HEAP_ZERO_MEMORY, block, to[use - 1]); });
    size_t kept = lesser(size, to[use - 1]);
    tell(line, early, block, kept);
    if (!all_zero(block, kept, to[use - 1])) line.say(" NOT ZERO");
    tell_freed(line, early, block);
  }
}

// Found by a walk, which lists the blocks that the heap itself has.
size_t listed(const Early& early) {
  size_t found = 0;
  PROCESS_HEAP_ENTRY entry = {};
  while (HeapWalk(early.heap, &entry)) {
    if ((entry.wFlags & PROCESS_HEAP_ENTRY_BUSY) == 0) continue;
    for (size_t i = 0; i < kCount; ++i) found += entry.lpData == early.blocks[4][i] && entry.cbData == kEarlySizes[i];
  }
  return found;
}

void check_others() {
  {
    Line line("early malloc");
    for (size_t i = 0; i < kCount; ++i) {
      of_crt[i] = realloc(of_crt[i], kEarlySizes[i] + 500);
      if (!holds(of_crt[i], kEarlySizes[i], 2)) line.say(" NOT KEPT");
      free(of_crt[i]);
    }
  }
  {
    Line line("early LocalAlloc");
    line.say(" %Iu %Iu", LocalSize(fixed_block), LocalSize(movable_block));
    if (!holds(fixed_block, 100, 3) || !holds(LocalLock(movable_block), 100, 3)) line.say(" NOT KEPT");
    line.say(" %d", observed(line, [] { return LocalUnlock(movable_block); }));
    movable_block = observed(line, [] { return LocalReAlloc(movable_block, 9000, LMEM_MOVEABLE); });
    line.say(" %Iu", LocalSize(movable_block));
    line.say(LocalFree(fixed_block) == nullptr && LocalFree(movable_block) == nullptr ? " freed" : " not freed");
  }
  {
    Line line("early CoTaskMemAlloc");
    task_block = observed(line, [] { return CoTaskMemRealloc(task_block, 9000); });
    if (!holds(task_block, 100, 4)) line.say(" NOT KEPT");
    CoTaskMemFree(task_block);
  }
  Line line("early SysAllocString");
  line.say(" %u", SysStringLen(string));
  line.say(" %d", observed(line, [] { return SysReAllocStringLen(&string, L"another", 7); }));
  line.say(" %u", SysStringLen(string));
  SysFreeString(string);
}

}  // namespace

void make_early_blocks() {
  early_heaps[0].heap = GetProcessHeap();
  early_heaps[1].heap = HeapCreate(0, 0, 0);
  early_heaps[2].heap = HeapCreate(0, 0, 64 * kMiB);
  for (Early& early : early_heaps) {
    for (auto& blocks : early.blocks) {
      for (size_t i = 0; i < kCount; ++i) {
        blocks[i] = HeapAlloc(early.heap, 0, kEarlySizes[i]);  // NULL: too large for a heap that has a maximum
        fill(blocks[i], kEarlySizes[i], 1);
      }
    }
  }
  for (size_t i = 0; i < kCount; ++i) fill(of_crt[i] = malloc(kEarlySizes[i]), kEarlySizes[i], 2);
  fill(fixed_block = LocalAlloc(LMEM_FIXED, 100), 100, 3);
  movable_block = LocalAlloc(LMEM_MOVEABLE, 100);
  fill(LocalLock(movable_block), 100, 3);
  fill(task_block = CoTaskMemAlloc(100), 100, 4);
  string = SysAllocString(L"made before");
}

void check_early_blocks() {
  for (const Early& early : early_heaps) {
    for (size_t i = 0; i < kCount; ++i) check(early, i);
    Line line("early %s heap", early.name);
    line.say(" listed %Iu", listed(early));
    void* block = observed(line, [&] { return HeapAlloc(early.heap, HEAP_ZERO_MEMORY, 1000); });
    line.say(" size=%Iu zero=%d", HeapSize(early.heap, 0, block), all_zero(block, 0, 1000));
    tell_freed(line, early, block);
    line.say(" valid=%d", HeapValidate(early.heap, 0, nullptr));
    if (early.heap == GetProcessHeap()) continue;
    line.say(" destroyed=%d", observed(line, [&] { return HeapDestroy(early.heap); }));
  }
  check_others();
}
