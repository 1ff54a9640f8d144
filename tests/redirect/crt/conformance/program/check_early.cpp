// Blocks that were made before reheap.dll came: whoever made them resizes, measures and frees them. And
// blocks that one group of twins makes and another frees.
#include "checks.h"

namespace {

constexpr size_t kEarlySizes[] = {1, 100, 5000, 300000};
constexpr size_t kCount = sizeof kEarlySizes / sizeof *kEarlySizes;

enum Fate { kFree, kGrow, kShrink, kReallocZero, kRecalloc, kExpand, kFates };

struct Early {
  void* plain[kFates][kCount];
  void* aligned[kFates][kCount];
  void* offset[kFates][kCount];
  char* copy;
  void* by_new;
};
Early early;

constexpr size_t kAlignment = 64;
constexpr size_t kOffset = 8;

// Whether the block went back to the heap of the CRT, the only one that can have made it. A plain run
// shows that this is seen.
void tell_return(Line& line) { line.say(take_frees() > 0 ? " went back" : " did NOT go back"); }

void tell_kept(Line& line, void* block, size_t size) {
  if (block == nullptr)
    line.say(" null");
  else
    line.say(holds(block, size, 6) ? " kept" : " LOST");
}

void finish_plain(Line& line, const Twins& twins, void* block, size_t size, size_t kept) {
  tell_kept(line, block, kept);
  line.say(" msize=%Iu", twins.msize(block));
  fill(block, size, 6);
  twins.free(block);
}

void check_plain(const Twins& twins, size_t index) {
  size_t size = kEarlySizes[index];
  auto block = [&](Fate fate) { return early.plain[fate][index]; };
  {
    Line line("early free of %Iu", size);
    line.say(" msize=%Iu", twins.msize(block(kFree)));
    take_frees();
    twins.free(block(kFree));
    tell_return(line);
  }
  {
    Line line("early realloc %Iu to %Iu", size, size * 3);
    finish_plain(line, twins, twins.realloc(block(kGrow), size * 3), size * 3, size);
  }
  {
    Line line("early realloc %Iu to 1", size);
    finish_plain(line, twins, twins.realloc(block(kShrink), 1), 1, 1);
  }
  {
    Line line("early realloc %Iu to 0", size);
    take_frees();
    line.say(twins.realloc(block(kReallocZero), 0) == nullptr ? " null" : " BLOCK");
    tell_return(line);
  }
  {
    Line line("early _expand of %Iu to itself", size);
    void* result = twins.expand(block(kExpand), size);
    line.say(result == block(kExpand) ? " same" : " NOT THE SAME");
    finish_plain(line, twins, block(kExpand), size, size);
  }
  if (twins.recalloc == nullptr) {
    twins.free(block(kRecalloc));
    return;
  }
  Line line("early _recalloc %Iu to %Iu", size, size * 3);
  void* result = twins.recalloc(block(kRecalloc), 3, size);
  line.say(all_zero(result, size, size * 3) ? " zero" : " STALE");
  finish_plain(line, twins, result, size * 3, size);
}

void finish_aligned(Line& line, const Twins& twins, void* block, size_t size, size_t kept, size_t offset) {
  tell_kept(line, block, kept);
  if (twins.aligned_msize != nullptr) line.say(" msize=%Iu", twins.aligned_msize(block, kAlignment, offset));
  line.say(is_aligned(block, kAlignment, offset) ? " aligned" : " MISALIGNED");
  fill(block, size, 6);
  twins.aligned_free(block);
}

void check_aligned_free(const Twins& twins, void* block, size_t size, size_t offset) {
  Line line("early _aligned_free of %Iu offset %Iu", size, offset);
  if (twins.aligned_msize != nullptr) line.say(" msize=%Iu", twins.aligned_msize(block, kAlignment, offset));
  take_frees();
  twins.aligned_free(block);
  tell_return(line);
}

void check_aligned_realloc(const Twins& twins, void* block, size_t from, size_t to, size_t offset) {
  Line line("early _aligned_realloc %Iu to %Iu offset %Iu", from, to, offset);
  if (to == 0) take_frees();
  void* result =
      offset == 0 ? twins.aligned_realloc(block, to, kAlignment) : twins.offset_realloc(block, to, kAlignment, offset);
  if (to == 0) {
    line.say(result == nullptr ? " null" : " BLOCK");
    tell_return(line);
    return;
  }
  finish_aligned(line, twins, result, to, lesser(from, to), offset);
}

void check_aligned_recalloc(const Twins& twins, void* block, size_t size, size_t offset) {
  if (twins.aligned_recalloc == nullptr) {
    twins.aligned_free(block);
    return;
  }
  Line line("early _aligned_recalloc %Iu to %Iu offset %Iu", size, size * 3, offset);
  void* result = offset == 0 ? twins.aligned_recalloc(block, 3, size, kAlignment)
                             : twins.offset_recalloc(block, 3, size, kAlignment, offset);
  line.say(all_zero(result, size, size * 3) ? " zero" : " STALE");
  finish_aligned(line, twins, result, size * 3, size, offset);
}

void check_aligned_blocks(const Twins& twins, size_t index, size_t offset) {
  size_t size = kEarlySizes[index] + offset + 1;
  auto block = [&](Fate fate) { return offset == 0 ? early.aligned[fate][index] : early.offset[fate][index]; };
  check_aligned_free(twins, block(kFree), size, offset);
  check_aligned_realloc(twins, block(kGrow), size, size * 3, offset);
  check_aligned_realloc(twins, block(kShrink), size, offset + 1, offset);
  check_aligned_realloc(twins, block(kReallocZero), size, 0, offset);
  check_aligned_realloc(twins, block(kExpand), size, size, offset);
  check_aligned_recalloc(twins, block(kRecalloc), size, offset);
}

void make(const Twins& twins) {
  for (size_t fate = 0; fate < kFates; fate++) {
    for (size_t i = 0; i < kCount; i++) {
      early.plain[fate][i] = fate % 2 == 0 ? twins.malloc(kEarlySizes[i]) : twins.calloc(1, kEarlySizes[i]);
      fill(early.plain[fate][i], kEarlySizes[i], 6);
      if (twins.aligned_malloc == nullptr) continue;
      early.aligned[fate][i] = twins.aligned_malloc(kEarlySizes[i] + 1, kAlignment);
      fill(early.aligned[fate][i], kEarlySizes[i] + 1, 6);
      early.offset[fate][i] = twins.offset_malloc(kEarlySizes[i] + kOffset + 1, kAlignment, kOffset);
      fill(early.offset[fate][i], kEarlySizes[i] + kOffset + 1, 6);
    }
  }
}

const Twins* all_twins[] = {&crt.plain, &crt.o, &crt.base};

// Those that have every function the early blocks meet.
const Twins& twins_after() { return crt.o.expand != nullptr && crt.o.msize != nullptr ? crt.o : crt.plain; }

}  // namespace

void make_early_blocks() {
  make(crt.plain);
  early.copy = crt.plain.strdup("a text that was copied early");
  if (crt.operator_new != nullptr) early.by_new = crt.operator_new(100);
}

// One size by the plain names, the next by another group's.
void check_early_blocks() {
  for (size_t i = 0; i < kCount; i++) {
    const Twins& twins = i % 2 == 0 ? crt.plain : twins_after();
    check_plain(twins, i);
    if (twins.aligned_malloc == nullptr) continue;
    check_aligned_blocks(twins, i, 0);
    check_aligned_blocks(twins, i, kOffset);
  }
  {
    Line line("early _strdup");
    line.say(" %s", early.copy);
    take_frees();
    crt.plain.free(early.copy);
    tell_return(line);
  }
  if (early.by_new == nullptr) return;
  Line line("early operator delete");
  take_frees();
  crt.operator_delete(early.by_new);
  tell_return(line);
}

void check_mixed_twins() {
  for (const Twins* maker : all_twins) {
    for (const Twins* user : all_twins) {
      if (maker->malloc == nullptr || user->malloc == nullptr || maker == user) continue;
      Line line("%smalloc%s then %srealloc%s, %sfree%s", maker->prefix, maker->suffix, user->prefix, user->suffix,
                user->prefix, user->suffix);
      void* block = maker->malloc(100);
      fill(block, 100, 2);
      block = user->realloc(block, 9000);
      tell_resized(line, *user, block, 9000, 100, 2);
      user->free(block);
    }
  }
}
