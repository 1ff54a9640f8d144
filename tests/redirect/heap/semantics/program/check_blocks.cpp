#include <string.h>

#include "checks.h"

namespace {

constexpr size_t kSizes[] = {
    0,     1,      2,      7,      8,      9,    15,       16,       17,       24,        31,       32,    33,    48,
    63,    64,     100,    112,    127,    128,  129,      255,      256,      511,       512,      513,   1000,  1023,
    1024,  1025,   2047,   2048,   4080,   4095, 4096,     4097,     8192,     10000,     16384,    32767, 32768, 32769,
    65536, 100000, 131072, 200000, 524288, kMiB, kMiB + 1, 3 * kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB};

constexpr DWORD kAllocFlags[] = {0, HEAP_ZERO_MEMORY, HEAP_NO_SERIALIZE, HEAP_GENERATE_EXCEPTIONS,
                                 HEAP_ZERO_MEMORY | HEAP_NO_SERIALIZE | HEAP_GENERATE_EXCEPTIONS};

void check_alloc(const Subject& subject, size_t size, DWORD flags) {
  leave_dirty(subject, size);
  Line line("%s %s alloc %Iu%s", subject.door.name, subject.name, size, name_of_flags(flags));
  void* block = observed(line, [&] { return subject.alloc(size, flags); });
  tell_block(line, subject, block);
  if (block == nullptr) return;
  if ((flags & HEAP_ZERO_MEMORY) != 0 && !all_zero(block, 0, size)) line.say(" NOT ZERO");
  fill(block, size, 1);
  if (!holds(block, size, 1)) line.say(" DOES NOT HOLD");
  tell_freed(line, subject, block);
}

struct Resize {
  size_t from, to;
};
constexpr Resize kResizes[] = {
    {0, 0},         {0, 1},          {0, 100},         {1, 0},        {1, 2},         {8, 16},        {15, 16},
    {16, 17},       {16, 8},         {24, 24},         {100, 0},      {100, 99},      {100, 101},     {100, 112},
    {100, 128},     {100, 1000},     {128, 129},       {1000, 100},   {1000, 1001},   {1000, 1500},   {1024, 2048},
    {4096, 4097},   {5000, 16},      {5000, 5008},     {5000, 10000}, {32768, 32769}, {32769, 32768}, {70000, 100},
    {70000, 70001}, {70000, 140000}, {131072, 100000}, {100000, 1_M}, {1_M, 1_M + 1}, {1_M, 2_M},     {3_M, 100},
    {3_M, 2_M},     {3_M, 4_M},      {8_M, 32_M}};

constexpr DWORD kReallocFlags[] = {0, HEAP_ZERO_MEMORY, HEAP_NO_SERIALIZE, HEAP_GENERATE_EXCEPTIONS};

void check_realloc(const Subject& subject, Resize resize, DWORD flags) {
  leave_dirty(subject, resize.to);
  Line line("%s %s realloc %Iu to %Iu%s", subject.door.name, subject.name, resize.from, resize.to,
            name_of_flags(flags));
  void* block = subject.alloc(resize.from);
  if (block == nullptr) {
    line.say(" none");
    return;
  }
  fill(block, resize.from, 2);
  void* resized = observed(line, [&] { return subject.door.realloc(subject.heap, flags, block, resize.to); });
  tell_block(line, subject, resized);
  if (resized == nullptr) resized = block;
  if (!holds(resized, lesser(resize.from, resize.to), 2)) line.say(" NOT KEPT");
  if ((flags & HEAP_ZERO_MEMORY) != 0 && !all_zero(resized, resize.from, resize.to)) line.say(" NOT ZERO");
  tell_freed(line, subject, resized);
}

constexpr DWORD kNoMemory = 0xC0000017;  // STATUS_NO_MEMORY

// Whether there is room behind a block depends on what lies there, so either way is right that is right throughout.
void check_in_place(const Subject& subject, Resize resize, DWORD flags) {
  Line line("%s %s realloc %Iu to %Iu%s", subject.door.name, subject.name, resize.from, resize.to,
            name_of_flags(flags));
  void* block = subject.alloc(resize.from);
  if (block == nullptr) {
    line.say(" none");
    return;
  }
  fill(block, resize.from, 3);
  void* resized = nullptr;
  SetLastError(kUntouched);
  Raised raised = guarded([&] { resized = subject.door.realloc(subject.heap, flags, block, resize.to); });
  DWORD error = raised.code == kNoMemory ? ERROR_NOT_ENOUGH_MEMORY : GetLastError();
  size_t size = subject.door.size(subject.heap, 0, block);
  bool grows = resize.to > resize.from;
  bool right = resized != nullptr ? resized == block && size == resize.to && error == kUntouched
                                  : grows && size == resize.from && error == ERROR_NOT_ENOUGH_MEMORY;
  if (right) {
    line.say(grows ? " grown or left" : " shrunk");
  } else {
    line.say(resized == nullptr ? " null" : resized == block ? " same" : " MOVED");
    line.say(" size=%Iu error=%lu", size, error);
  }
  size_t kept = lesser(resize.from, size);
  if (!holds(block, kept, 3)) line.say(" NOT KEPT");
  if (resized == block && (flags & HEAP_ZERO_MEMORY) != 0 && !all_zero(block, kept, size)) line.say(" NOT ZERO");
  tell_freed(line, subject, block);
}

// A block that is resized twice: what grows back is zero again, from the size it had between.
struct Breath {
  size_t whole, between;
};
constexpr Breath kBreaths[] = {{100, 10},     {100, 97},        {112, 111},   {64, 0},
                               {1000, 20},    {1000, 999},      {4096, 4000}, {32768, 30000},
                               {70000, 5000}, {131072, 131000}, {kMiB, 5000}, {3 * kMiB, 2 * kMiB + 5}};

}  // namespace

void check_alloc(const Subject& subject) {
  for (size_t size : kSizes) {
    for (DWORD flags : kAllocFlags) {
      bool briefly = size > kMiB + 1 && (flags & ~HEAP_ZERO_MEMORY) != 0;
      if (size <= subject.largest && !briefly) check_alloc(subject, size, flags);
    }
  }
}

void check_absurd(const Subject& subject) {
  for (const Huge& huge : kHuge) {
    for (DWORD flags : {DWORD{0}, DWORD{HEAP_ZERO_MEMORY}}) {
      Line line("%s %s alloc %s%s", subject.door.name, subject.name, huge.name, name_of_flags(flags));
      tell_block(line, subject, observed(line, [&] { return subject.alloc(huge.size, flags); }));
    }
    for (size_t size : {size_t{100}, 100 * kKiB}) {
      Line line("%s %s realloc %Iu to %s", subject.door.name, subject.name, size, huge.name);
      void* block = subject.alloc(size);
      fill(block, size, 4);
      void* resized = observed(line, [&] { return subject.door.realloc(subject.heap, 0, block, huge.size); });
      line.say(resized == nullptr ? " null" : " block");
      tell_block(line, subject, block);
      if (!holds(block, size, 4)) line.say(" NOT KEPT");
      tell_freed(line, subject, block);
    }
  }
}

void check_realloc(const Subject& subject) {
  for (const Resize& resize : kResizes) {
    if (resize.to > subject.largest || resize.from > subject.largest) continue;
    for (DWORD flags : kReallocFlags) check_realloc(subject, resize, flags);
  }
}

void check_in_place(const Subject& subject) {
  for (const Resize& resize : kResizes) {
    if (resize.to > subject.largest || resize.from > subject.largest) continue;
    for (DWORD flags : {DWORD{HEAP_REALLOC_IN_PLACE_ONLY}, DWORD{HEAP_REALLOC_IN_PLACE_ONLY | HEAP_ZERO_MEMORY}})
      check_in_place(subject, resize, flags);
  }
}

void check_zeroed_growth(const Subject& subject) {
  for (const Breath& breath : kBreaths) {
    if (breath.whole > subject.largest) continue;
    Line line("%s %s grow back %Iu to %Iu", subject.door.name, subject.name, breath.between, breath.whole);
    void* block = subject.alloc(breath.whole, HEAP_ZERO_MEMORY);
    for (int times = 0; block != nullptr && times < 3; ++times) {
      memset(block, 0xE5, breath.whole);
      block = subject.door.realloc(subject.heap, HEAP_ZERO_MEMORY, block, breath.between);
      if (block == nullptr) break;
      block = subject.door.realloc(subject.heap, HEAP_ZERO_MEMORY, block, breath.whole);
      if (block != nullptr && !all_zero(block, breath.between, breath.whole)) line.say(" NOT ZERO");
    }
    tell_block(line, subject, block);
    tell_freed(line, subject, block);
  }
}

void check_null(const Subject& subject) {
  const Door& door = subject.door;
  {
    Line line("%s %s free null", door.name, subject.name);
    line.say(" %d", observed(line, [&] { return subject.free(nullptr); }));
  }
  for (DWORD flags : {DWORD{0}, DWORD{HEAP_ZERO_MEMORY}, DWORD{HEAP_REALLOC_IN_PLACE_ONLY}}) {
    Line line("%s %s realloc null%s", door.name, subject.name, name_of_flags(flags));
    void* block = observed(line, [&] { return door.realloc(subject.heap, flags, nullptr, 100); });
    line.say(block == nullptr ? " null" : " block");
  }
  {
    Line line("%s %s validate", door.name, subject.name);
    line.say(" %d", observed(line, [&] { return door.validate(subject.heap, 0, nullptr); }));
  }
  {
    Line line("%s %s compact", door.name, subject.name);
    size_t largest = observed(line, [&] { return door.compact(subject.heap, 0); });
    line.say(largest != 0 ? " something" : " 0");
  }
}

void check_growth_figures() {
  constexpr size_t kLone[] = {16,    24,    100,    256,    1000,   1024, 4000,     4096,     10000,
                              32768, 50000, 100000, 200000, 500000, kMiB, 3 * kMiB, 16 * kMiB};
  struct {
    const char* name;
    size_t (*grown)(size_t size);
  } const kGrowth[] = {{"a byte", [](size_t size) { return size + 1; }},
                       {"an eighth", [](size_t size) { return size + size / 8; }},
                       {"the half", [](size_t size) { return size + size / 2; }},
                       {"itself", [](size_t size) { return 2 * size; }}};
  for (const auto& growth : kGrowth) {
    Line line("figure: lone blocks that grow in place by %s", growth.name);
    int count = 0;
    for (size_t size : kLone) {
      Private heap(kernel32);
      void* block = HeapAlloc(heap, 0, size);
      if (HeapReAlloc(heap, HEAP_REALLOC_IN_PLACE_ONLY, block, growth.grown(size)) == nullptr) continue;
      line.say(" %Iu", size);
      ++count;
    }
    line.say(" (%d)", count);
  }
}
