#include "checks.h"

namespace {

constexpr size_t kBlocks = 600;

struct Found {
  size_t of_ours, others, with_size, regions, committed_regions;
  DWORD end;
};

bool is_listed_once(const PROCESS_HEAP_ENTRY& entry, void* const* blocks, const size_t* sizes, bool* seen,
                    bool* right_size) {
  for (size_t i = 0; i < kBlocks; ++i) {
    if (entry.lpData != blocks[i] || seen[i]) continue;
    seen[i] = true;
    *right_size = entry.cbData == sizes[i];
    return true;
  }
  return false;
}

Found walk(HANDLE heap, void* const* blocks, const size_t* sizes) {
  static bool seen[kBlocks];
  for (bool& each : seen) each = false;
  Found found = {};
  PROCESS_HEAP_ENTRY entry = {};
  SetLastError(kUntouched);
  while (HeapWalk(heap, &entry)) {
    if ((entry.wFlags & PROCESS_HEAP_REGION) != 0) {
      ++found.regions;
      if (entry.Region.dwCommittedSize != 0) ++found.committed_regions;
    }
    if ((entry.wFlags & PROCESS_HEAP_ENTRY_BUSY) == 0) continue;
    bool right_size = false;
    if (is_listed_once(entry, blocks, sizes, seen, &right_size)) {
      ++found.of_ours;
      found.with_size += right_size;
    } else {
      ++found.others;
    }
  }
  found.end = GetLastError();
  return found;
}

void tell(Line& line, const Found& found) {
  line.say(" blocks=%Iu others=%Iu sized=%Iu", found.of_ours, found.others, found.with_size);
  line.say(found.regions != 0 ? " regions" : " no region");
  line.say(" end=%lu", found.end);
}

void* blocks[kBlocks];
size_t sizes[kBlocks];

struct List {
  const char* name;
  size_t (*size)(size_t index);
};

void fill_heap(HANDLE heap, size_t (*size)(size_t index)) {
  for (size_t i = 0; i < kBlocks; ++i) blocks[i] = HeapAlloc(heap, 0, sizes[i] = size(i));
}

// Every second one.
void free_blocks(HANDLE heap, size_t first) {
  for (size_t i = first; i < kBlocks; i += 2) {
    HeapFree(heap, 0, blocks[i]);
    blocks[i] = nullptr;
  }
}

void check_list(const List& list, DWORD flags) {
  Private heap(kernel32, flags);
  const auto tell_step = [&](const char* step) {
    Line line("walk%s %s: %s", name_of_flags(flags), list.name, step);
    tell(line, walk(heap, blocks, sizes));
  };
  for (void*& block : blocks) block = nullptr;
  tell_step("empty");
  fill_heap(heap, list.size);
  tell_step("full");
  free_blocks(heap, 0);
  tell_step("half");
  for (size_t i = 1; i < kBlocks; i += 2) {
    sizes[i] = sizes[i] / 2 + 3;
    blocks[i] = HeapReAlloc(heap, 0, blocks[i], sizes[i]);
  }
  BOOL locked = HeapLock(heap);
  tell_step("resized, under lock");
  if (locked) HeapUnlock(heap);
  free_blocks(heap, 1);
  tell_step("emptied");
}

size_t hundred_and_more(size_t index) { return 100 + index; }

void check_process_heap() {
  Line line("walk the process heap");
  HANDLE heap = GetProcessHeap();
  fill_heap(heap, hundred_and_more);
  Found found = walk(heap, blocks, sizes);
  found.others = 0;  // the system's, as many as there are
  tell(line, found);
  for (void* block : blocks) HeapFree(heap, 0, block);
}

void check_freed_block() {
  Line line("walk on from a freed block");
  Private heap(kernel32);
  PROCESS_HEAP_ENTRY entry = {};
  for (size_t i = 0; i < 50; ++i) blocks[i] = HeapAlloc(heap, 0, 100);
  size_t steps = 0;
  SetLastError(kUntouched);
  for (; steps < 10000 && HeapWalk(heap, &entry); ++steps) {
    if ((entry.wFlags & PROCESS_HEAP_ENTRY_BUSY) == 0) continue;
    if (entry.lpData == blocks[20]) break;
  }
  line.say(steps < 10000 ? " reached" : " never ends");
}

}  // namespace

// Lists of blocks, made and freed in several ways, must be what a walk finds.
void check_walk() {
  constexpr List kLists[] = {{"small", [](size_t i) { return i; }},
                             {"all alike", [](size_t) { return size_t{40}; }},
                             {"mixed", [](size_t i) { return i * i + 1; }},
                             {"large", [](size_t i) { return i < 12 ? (i + 1) * 100000 : 10; }}};
  for (const List& list : kLists)
    for (DWORD flags : {DWORD{0}, DWORD{HEAP_NO_SERIALIZE}}) check_list(list, flags);
  check_process_heap();
  {
    Line line("walk a heap that has a maximum");
    Private heap(kernel32, 0, 4 * kMiB);
    fill_heap(heap, hundred_and_more);
    tell(line, walk(heap, blocks, sizes));
  }
  check_freed_block();
  Line line("walk no heap");
  PROCESS_HEAP_ENTRY entry = {};
  line.say(" %d", observed(line, [&] { return HeapWalk(nullptr, &entry); }));
}
