// The eight _aligned_ functions and _aligned_msize.
#include "checks.h"

namespace {

struct Shape {
  size_t size;
  size_t alignment;
  size_t offset;
};
// The last ones are not allowed (no power of two, an offset beyond the block) or too much, by themselves or with what
// alignment adds.
constexpr Shape kShapes[] = {
    {1, 1, 0},      {100, 1, 0},    {100, 2, 0},         {100, 4, 0},        {100, 8, 0},      {100, 16, 0},
    {100, 32, 0},   {100, 64, 0},   {1000, 128, 0},      {100, 4096, 0},     {100, 65536, 0},  {100000, 64, 0},
    {1_M, 4096, 0}, {1_M, 1_M, 0},  {0, 16, 0},          {0, 64, 0},         {0, 65536, 0},    {24, 16, 8},
    {100, 64, 4},   {100, 64, 1},   {100, 64, 99},       {100, 64, 64},      {1000, 4096, 17}, {100000, 64, 12},
    {100, 16, 5},   {100, 0, 0},    {100, 3, 0},         {100, 24, 0},       {100, 64, 100},   {100, 64, 101},
    {0, 16, 1},     {kMost, 16, 0}, {kMost - 64, 64, 0}, {kHalf + 1, 16, 0}, {kHalf, 4096, 8}};

struct Change {
  size_t from;
  size_t to;
  size_t alignment;
  size_t offset;
};
constexpr Change kChanges[] = {
    {100, 50, 64, 0},        {100, 100, 64, 0},    {100, 104, 64, 0},    {100, 112, 64, 0},
    {100, 120, 16, 0},       {100, 1000, 64, 0},   {1000, 100, 64, 0},   {100, 1000, 4096, 0},
    {100000, 200000, 64, 0}, {200000, 100, 64, 0}, {1_M, 3_M, 4096, 0},  {3_M, 1_M, 4096, 0},
    {100, 50, 64, 8},        {100, 1000, 64, 8},   {1000, 1001, 32, 20}, {100000, 200000, 128, 100},
    {100, 104, 8, 0},        {100, 200, 4, 0},     {0, 100, 32, 0}};

// The function without an offset where there is none, so that both are called.
void* make(const Twins& twins, size_t size, size_t alignment, size_t offset) {
  return offset == 0 ? twins.aligned_malloc(size, alignment) : twins.offset_malloc(size, alignment, offset);
}

void begin(Line& line, size_t size, size_t alignment, size_t offset) {
  if (size > kMost / 4)
    line.say(" huge,");
  else
    line.say(" %Iu bytes", size);
  line.say(" at %Iu offset %Iu:", alignment, offset);
}

void tell_aligned(Line& line, const Twins& twins, void* block, size_t size, size_t alignment, size_t offset) {
  if (block == nullptr) {
    line.say(" null");
    return;
  }
  line.say(is_aligned(block, alignment, offset) ? " aligned" : " MISALIGNED");
  if (twins.aligned_msize != nullptr) line.say(" msize=%Iu", twins.aligned_msize(block, alignment, offset));
  fill(block, size, 4);
  expect_served(line, block);
}

// Wine adds what alignment takes without a look, and then writes beyond what it got.
bool adding_wraps(size_t size) { return made_by_wine() && !reheap_loaded() && size > kMost - 4096; }

void check_shape(const Twins& twins, Shape shape, bool by_offset_function) {
  Line line(by_offset_function ? "%s_aligned_offset_malloc" : "%s_aligned_malloc", twins.prefix);
  begin(line, shape.size, shape.alignment, shape.offset);
  if (adding_wraps(shape.size)) {
    line.say(" not tried");
    return;
  }
  void* block = by_offset_function ? twins.offset_malloc(shape.size, shape.alignment, shape.offset)
                                   : twins.aligned_malloc(shape.size, shape.alignment);
  tell_aligned(line, twins, block, shape.size, shape.alignment, shape.offset);
  twins.aligned_free(block);
}

void tell_kept(Line& line, const void* block, Change change) {
  if (block == nullptr) return;
  line.say(holds(block, lesser(change.from, change.to), 5) ? " kept" : " LOST");
}

void check_realloc_of(const Twins& twins, Change change) {
  void* block = make(twins, change.from, change.alignment, change.offset);
  fill(block, change.from, 5);
  Line line(change.offset == 0 ? "%s_aligned_realloc" : "%s_aligned_offset_realloc", twins.prefix);
  line.say(" %Iu to", change.from);
  begin(line, change.to, change.alignment, change.offset);
  void* result = change.offset == 0 ? twins.aligned_realloc(block, change.to, change.alignment)
                                    : twins.offset_realloc(block, change.to, change.alignment, change.offset);
  tell_kept(line, result, change);
  tell_aligned(line, twins, result, change.to, change.alignment, change.offset);
  twins.aligned_free(result);
}

void check_recalloc_of(const Twins& twins, Change change) {
  if (twins.aligned_recalloc == nullptr || twins.offset_recalloc == nullptr) return;
  leave_dirty(twins, change.to);
  void* block = make(twins, change.from, change.alignment, change.offset);
  fill(block, change.from, 5);
  Line line(change.offset == 0 ? "%s_aligned_recalloc" : "%s_aligned_offset_recalloc", twins.prefix);
  line.say(" %Iu to", change.from);
  begin(line, change.to, change.alignment, change.offset);
  void* result = change.offset == 0 ? twins.aligned_recalloc(block, 1, change.to, change.alignment)
                                    : twins.offset_recalloc(block, 1, change.to, change.alignment, change.offset);
  tell_kept(line, result, change);
  if (result != nullptr && change.to > change.from)
    line.say(all_zero(result, change.from, change.to) ? " zero" : " STALE");
  tell_aligned(line, twins, result, change.to, change.alignment, change.offset);
  twins.aligned_free(result);
}

// Asking for another alignment or offset than the block was made with.
void check_other_alignment(const Twins& twins) {
  struct {
    size_t made_at, made_offset, alignment, offset;
  } constexpr kCases[] = {{16, 0, 256, 0}, {256, 0, 16, 0}, {64, 8, 64, 0}, {64, 0, 64, 8}, {64, 8, 64, 16}};
  for (auto [made_at, made_offset, alignment, offset] : kCases) {
    void* block = make(twins, 100, made_at, made_offset);
    fill(block, 100, 5);
    Line line("%s_aligned_offset_realloc made at %Iu offset %Iu", twins.prefix, made_at, made_offset);
    begin(line, 5000, alignment, offset);
    void* result = twins.offset_realloc(block, 5000, alignment, offset);
    if (result == nullptr) {
      line.say(" null");
      twins.aligned_free(block);
      continue;
    }
    line.say(holds(result, 100, 5) ? " kept" : " LOST");
    line.say(is_aligned(result, alignment, offset) ? " aligned" : " misaligned");
    expect_served(line, result);
    twins.aligned_free(result);
  }
}

// The old block must be as it was; a result that is there all the same has taken its place.
template <typename Resize> void check_failing(const Twins& twins, const char* name, const char* how, Resize resize) {
  void* block = twins.aligned_malloc(100, 64);
  fill(block, 100, 5);
  Line line("%s%s(block, %s)", twins.prefix, name, how);
  void* result = resize(block);
  if (result != nullptr) {
    line.say(" BLOCK");
    return;
  }
  line.say(" null").say(holds(block, 100, 5) ? " kept" : " LOST");
  if (twins.aligned_msize != nullptr) line.say(" old msize=%Iu", twins.aligned_msize(block, 64, 0));
  twins.aligned_free(block);
}

void check_failing_resizes(const Twins& twins) {
  for (Huge huge : kHuge) {
    if (adding_wraps(huge.size)) {
      Line("%s_aligned_realloc(block, %s)", twins.prefix, huge.name).say(" not tried");
      continue;
    }
    check_failing(twins, "_aligned_realloc", huge.name,
                  [&](void* block) { return twins.aligned_realloc(block, huge.size, 64); });
  }
  struct {
    const char* name;
    size_t alignment;
  } constexpr kWrong[] = {{"200 at 0", 0}, {"200 at 3", 3}, {"200 at 24", 24}};
  for (auto [name, alignment] : kWrong) {
    check_failing(twins, "_aligned_realloc", name,
                  [&](void* block) { return twins.aligned_realloc(block, 200, alignment); });
  }
  check_failing(twins, "_aligned_offset_realloc", "200 offset 200",
                [&](void* block) { return twins.offset_realloc(block, 200, 64, 200); });
  if (twins.aligned_recalloc == nullptr || twins.offset_recalloc == nullptr) return;
  check_failing(twins, "_aligned_recalloc", "overflow",
                [&](void* block) { return twins.aligned_recalloc(block, kHalf, 3, 64); });
  check_failing(twins, "_aligned_offset_recalloc", "overflow",
                [&](void* block) { return twins.offset_recalloc(block, kHalf + 1, 2, 64, 8); });
}

void check_null_and_zero(const Twins& twins) {
  {
    Line line("%s_aligned_realloc(null, 100, 64)", twins.prefix);
    void* block = twins.aligned_realloc(nullptr, 100, 64);
    tell_aligned(line, twins, block, 100, 64, 0);
    twins.aligned_free(block);
  }
  {
    Line line("%s_aligned_offset_realloc(null, 100, 64, 4)", twins.prefix);
    void* block = twins.offset_realloc(nullptr, 100, 64, 4);
    tell_aligned(line, twins, block, 100, 64, 4);
    twins.aligned_free(block);
  }
  if (twins.aligned_recalloc != nullptr) {
    leave_dirty(twins, 100);
    Line line("%s_aligned_recalloc(null, 4, 25, 64)", twins.prefix);
    void* block = twins.aligned_recalloc(nullptr, 4, 25, 64);
    if (block != nullptr) line.say(all_zero(block, 0, 100) ? " zero" : " STALE");
    tell_aligned(line, twins, block, 100, 64, 0);
    twins.aligned_free(block);
  }
  {
    Line line("%s_aligned_realloc(block, 0, 64)", twins.prefix);
    line.say(twins.aligned_realloc(twins.aligned_malloc(100, 64), 0, 64) == nullptr ? " null" : " BLOCK");
  }
  {
    Line line("%s_aligned_offset_realloc(block, 0, 64, 8)", twins.prefix);
    void* result = twins.offset_realloc(twins.offset_malloc(100, 64, 8), 0, 64, 8);
    line.say(result == nullptr ? " null" : " BLOCK");
  }
  if (twins.aligned_recalloc != nullptr) {
    Line line("%s_aligned_recalloc(block, 0, 9, 64)", twins.prefix);
    line.say(twins.aligned_recalloc(twins.aligned_malloc(100, 64), 0, 9, 64) == nullptr ? " null" : " BLOCK");
  }
  {
    Line line("%s_aligned_free(null)", twins.prefix);
    twins.aligned_free(nullptr);
  }
  if (twins.aligned_msize != nullptr) {
    Line line("%s_aligned_msize(null)", twins.prefix);
    SSIZE_T size = 0;
    auto measure = [&] { size = static_cast<SSIZE_T>(twins.aligned_msize(nullptr, 16, 0)); };
    if (guarded(measure).code != 0)
      line.say(" faults");
    else
      line.say(" %Id", size);
  }
}

}  // namespace

void check_aligned(const Twins& twins) {
  if (twins.aligned_malloc == nullptr) return;
  for (Shape shape : kShapes) {
    if (shape.offset == 0) check_shape(twins, shape, false);
    check_shape(twins, shape, true);
  }
  for (Change change : kChanges) {
    check_realloc_of(twins, change);
    check_recalloc_of(twins, change);
  }
  check_other_alignment(twins);
  check_failing_resizes(twins);
  check_null_and_zero(twins);
}
