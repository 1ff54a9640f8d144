// malloc, calloc, realloc, _recalloc, _expand, _msize.
#include "checks.h"

namespace {

constexpr size_t kSizes[] = {0,     1,     2,      7,      8,    15,       16,           17,    24,    31,
                             32,    33,    63,     64,     65,   100,      127,          128,   129,   250,
                             1000,  1024,  1025,   4095,   4096, 4097,     16 * kKiB,    20000, 32767, 32768,
                             32769, 65536, 100000, 262144, kMiB, kMiB + 1, 16 * kMiB + 1};

struct Step {
  size_t from;
  size_t to;
};
constexpr Step kSteps[] = {{0, 1},         {1, 0},        {1, 1},       {1, 2},      {8, 9},         {16, 17},
                           {100, 100},     {100, 104},    {100, 112},   {100, 113},  {100, 50},      {100, 1},
                           {1000, 1001},   {1000, 10},    {4096, 4097}, {5000, 100}, {32768, 32769}, {40000, 50000},
                           {50000, 40000}, {100000, 300}, {1_M, 3_M},   {3_M, 100},  {3_M, 1_M + 1}, {20, 5_M}};

// A block after an attempt that must fail: alive and unchanged.
void tell_survivor(Line& line, const Twins& twins, void* result, void* block, size_t size) {
  line.say(result == nullptr ? " null" : " BLOCK").say(" old msize=%Iu", exact_size(twins, block));
  line.say(holds(block, size, 2) ? " kept" : " LOST");
}

void check_overflow(const Twins& twins, size_t count, size_t size, const char* name) {
  Line line("%scalloc%s(%s)", twins.prefix, twins.suffix, name);
  void* block = twins.calloc(count, size);
  line.say(block == nullptr ? " null" : " BLOCK");
}

void recalloc_step(const Twins& twins, Step step) {
  leave_dirty(twins, step.to);
  void* block = twins.malloc(step.from);
  // No bytes may be served as one, which is then the program's.
  size_t before = exact_size(twins, block);
  fill(block, before, 2);
  Line line("%s_recalloc%s(%Iu to %Iu)", twins.prefix, twins.suffix, step.from, step.to);
  void* result = twins.recalloc(block, 1, step.to);
  if (result != nullptr && step.to > before) line.say(all_zero(result, before, step.to) ? " zero" : " STALE");
  tell_resized(line, twins, result, step.to, lesser(before, step.to), 2);
  if (result != nullptr) twins.free(result);
}

// The old size is the one asked for last, by whatever function.
template <typename Shrink> void recalloc_after(const Twins& twins, const char* name, Shrink shrink) {
  leave_dirty(twins, 200);
  void* block = twins.malloc(200);
  fill(block, 200, 2);
  Line line("%s_recalloc%s(100 to 200 after %s)", twins.prefix, twins.suffix, name);
  block = shrink(block);
  void* result = twins.recalloc(block, 10, 20);
  line.say(holds(result, 100, 2) ? " kept" : " LOST");
  line.say(all_zero(result, 100, 200) ? " zero" : " STALE").say(" msize=%Iu", exact_size(twins, result));
  twins.free(result);
}

void check_recalloc_limits(const Twins& twins) {
  {
    Line line("%s_recalloc%s(null, 3, 5)", twins.prefix, twins.suffix);
    void* block = twins.recalloc(nullptr, 3, 5);
    if (block != nullptr) line.say(all_zero(block, 0, 15) ? " zero" : " STALE");
    tell_block(line, twins, block, 15);
    twins.free(block);
  }
  {
    Line line("%s_recalloc%s(null, 0, 5)", twins.prefix, twins.suffix);
    void* block = twins.recalloc(nullptr, 0, 5);
    tell_block(line, twins, block, 0);
    twins.free(block);
  }
  void* block = twins.malloc(100);
  fill(block, 100, 2);
  for (Huge huge : kHuge) {
    Line line("%s_recalloc%s(block, 1, %s)", twins.prefix, twins.suffix, huge.name);
    tell_survivor(line, twins, twins.recalloc(block, 1, huge.size), block, 100);
  }
  for (size_t count : {size_t{3}, kHalf, kMost}) {
    Line line("%s_recalloc%s(block, overflow)", twins.prefix, twins.suffix);
    tell_survivor(line, twins, twins.recalloc(block, count, kHalf + 1), block, 100);
  }
  {
    Line line("%s_recalloc%s(block, 0, 7)", twins.prefix, twins.suffix);
    line.say(twins.recalloc(block, 0, 7) == nullptr ? " null" : " BLOCK");
  }
}

// Another block of the size is likely to stand behind it.
void expand_step(const Twins& twins, Step step) {
  void* block = twins.malloc(step.from);
  void* neighbour = twins.malloc(step.from);
  fill(block, step.from, 2);
  Line line("%s_expand%s(%Iu to %Iu)", twins.prefix, twins.suffix, step.from, step.to);
  void* result = twins.expand(block, step.to);
  line.say(result == block ? " same" : result == nullptr ? " null" : " MOVED");
  line.say(" msize=%Iu", exact_size(twins, block));
  line.say(holds(block, lesser(step.from, step.to), 2) ? " kept" : " LOST");
  fill(block, exact_size(twins, block), 3);
  twins.free(block);
  twins.free(neighbour);
}

}  // namespace

void check_malloc(const Twins& twins) {
  for (size_t size : kSizes) {
    Line line("%smalloc%s(%Iu)", twins.prefix, twins.suffix, size);
    void* block = twins.malloc(size);
    tell_block(line, twins, block, size);
    twins.free(block);
  }
  for (Huge huge : kHuge) {
    Line line("%smalloc%s(%s)", twins.prefix, twins.suffix, huge.name);
    line.say(twins.malloc(huge.size) == nullptr ? " null" : " BLOCK");
  }
  Line line("%sfree%s(null)", twins.prefix, twins.suffix);
  twins.free(nullptr);
}

void check_calloc(const Twins& twins) {
  for (size_t size : kSizes) {
    leave_dirty(twins, size);
    Line line("%scalloc%s(1, %Iu)", twins.prefix, twins.suffix, size);
    void* block = twins.calloc(1, size);
    if (block != nullptr) line.say(all_zero(block, 0, size) ? " zero" : " STALE");
    tell_block(line, twins, block, size);
    twins.free(block);
  }
  Line line("%scalloc%s(7, 11)", twins.prefix, twins.suffix);
  void* block = twins.calloc(7, 11);
  tell_block(line, twins, block, 77);
  twins.free(block);
  for (Huge huge : kHuge) check_overflow(twins, 1, huge.size, huge.name);
  check_overflow(twins, kHalf + 1, 2, "half+1, 2");
  check_overflow(twins, kHalf, 3, "half, 3");
  check_overflow(twins, kMost, kMost, "max, max");
  {
    Line zero("%scalloc%s(max, 0)", twins.prefix, twins.suffix);
    block = twins.calloc(kMost, 0);
    tell_block(zero, twins, block, 0);
    twins.free(block);
  }
}

void check_realloc(const Twins& twins) {
  for (size_t size : {size_t{0}, size_t{1}, size_t{100}, kMiB}) {
    Line line("%srealloc%s(null, %Iu)", twins.prefix, twins.suffix, size);
    void* block = twins.realloc(nullptr, size);
    tell_block(line, twins, block, size);
    twins.free(block);
  }
  for (Step step : kSteps) {
    void* block = twins.malloc(step.from);
    size_t before = exact_size(twins, block);
    fill(block, before, 2);
    Line line("%srealloc%s(%Iu to %Iu)", twins.prefix, twins.suffix, step.from, step.to);
    void* result = twins.realloc(block, step.to);
    tell_resized(line, twins, result, step.to, lesser(before, step.to), 2);
    if (result != nullptr) twins.free(result);
  }
  void* block = twins.malloc(100);
  fill(block, 100, 2);
  for (Huge huge : kHuge) {
    Line line("%srealloc%s(block, %s)", twins.prefix, twins.suffix, huge.name);
    tell_survivor(line, twins, twins.realloc(block, huge.size), block, 100);
  }
  twins.free(block);
  Line line("%srealloc%s(null, max)", twins.prefix, twins.suffix);
  line.say(twins.realloc(nullptr, kMost) == nullptr ? " null" : " BLOCK");
}

void check_recalloc(const Twins& twins) {
  if (twins.recalloc == nullptr) return;
  for (Step step : kSteps) recalloc_step(twins, step);
  recalloc_after(twins, "_recalloc", [&](void* block) { return twins.recalloc(block, 1, 100); });
  recalloc_after(twins, "realloc", [&](void* block) { return twins.realloc(block, 100); });
  if (twins.expand != nullptr) {
    recalloc_after(twins, "_expand", [&](void* block) {
      void* same = twins.expand(block, 100);
      return same != nullptr ? same : twins.realloc(block, 100);
    });
  }
  check_recalloc_limits(twins);
}

void check_expand(const Twins& twins) {
  if (twins.expand == nullptr) return;
  for (Step step : kSteps) {
    bool by_chance = step.from > 32 * kKiB && step.to > step.from;  // whether there is room behind it
    if (!by_chance) expand_step(twins, step);
  }
  void* block = twins.malloc(100);
  fill(block, 100, 2);
  for (Huge huge : kHuge) {
    Line line("%s_expand%s(block, %s)", twins.prefix, twins.suffix, huge.name);
    tell_survivor(line, twins, twins.expand(block, huge.size), block, 100);
  }
  twins.free(block);
  Line line("%s_expand%s(null, 1)", twins.prefix, twins.suffix);
  line.say(twins.expand(nullptr, 1) == nullptr ? " null" : " BLOCK");
}

void check_msize(const Twins& twins) {
  if (twins.msize == nullptr) return;
  Line line("%s_msize%s(null)", twins.prefix, twins.suffix);
  SSIZE_T size = 0;
  if (guarded([&] { size = static_cast<SSIZE_T>(twins.msize(nullptr)); }).code != 0)
    line.say(" faults");
  else
    line.say(" %Id", size);
}
