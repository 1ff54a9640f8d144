#include "checks.h"

namespace {

constexpr DWORD kUserValue = 0x100;  // HEAP_SETTABLE_USER_VALUE
constexpr DWORD kUserFlag1 = 0x200;  // HEAP_SETTABLE_USER_FLAG1
constexpr DWORD kUserFlag2 = 0x400;
constexpr DWORD kTag = 5 << 18;  // HEAP_MAKE_TAG_FLAGS(0, 5)

// A value is told where there is to be one: else it is what lay there by chance.
void tell_user(Line& line, HANDLE heap, void* block, bool with_value) {
  void* value = &line;
  ULONG flags = 0xAAAA;
  BOOLEAN told = observed(line, [&] { return rtl.GetUserInfoHeap(heap, 0, block, &value, &flags); });
  line.say(" told=%d flags=%lx", told, flags);
  if (with_value) line.say(" value=%s", value == nullptr ? "null" : value == &line ? "untouched" : "set");
}

void check(const Subject& subject, DWORD flags, Maker maker) {
  HANDLE heap = subject.heap;
  bool with_value = flags == 0 || (flags & kUserValue) != 0;
  for (size_t size : {size_t{0}, size_t{100}, 100 * kKiB, 2 * kMiB}) {
    Line line("user value %s flags %lx size %Iu", subject.name, flags, size);
    void* block = observed(line, [&] { return HeapAlloc(heap, flags | HEAP_ZERO_MEMORY, size); });
    if (block == nullptr) {
      line.say(" null");
      continue;
    }
    expect_maker(line, maker, block);
    if (!all_zero(block, 0, size)) line.say(" NOT ZERO");
    line.say(" size=%Iu", HeapSize(heap, 0, block));
    tell_user(line, heap, block, with_value);
    line.say(" set=%d",
             observed(line, [&] { return rtl.SetUserValueHeap(heap, 0, block, const_cast<Subject*>(&subject)); }));
    tell_user(line, heap, block, with_value);
    if (rtl.SetUserFlagsHeap != nullptr) {
      line.say(" flag=%d", observed(line, [&] { return rtl.SetUserFlagsHeap(heap, 0, block, 0, kUserFlag2); }));
      tell_user(line, heap, block, with_value);
    }
    void* larger = observed(line, [&] { return HeapReAlloc(heap, flags, block, size + 1000); });
    if (larger == nullptr) {
      line.say(" not resized");
      larger = block;
    }
    line.say(" size=%Iu", HeapSize(heap, 0, larger));
    tell_user(line, heap, larger, with_value);
    line.say(" valid=%d", observed(line, [&] { return HeapValidate(heap, 0, larger); }));
    line.say(" freed=%d", observed(line, [&] { return HeapFree(heap, 0, larger); }));
  }
}

void check(const Subject& subject) {
  check(subject, 0, subject.maker);
  check(subject, kUserValue, Maker::system);
  check(subject, kUserFlag1, Maker::system);
  check(subject, kUserValue | kUserFlag1 | kUserFlag2, Maker::system);
  check(subject, kTag, Maker::system);
}

}  // namespace

void check_user_values() {
  if (rtl.GetUserInfoHeap == nullptr || rtl.SetUserValueHeap == nullptr) return;
  Private heap(kernel32);
  Private maximum(kernel32, 0, 8 * kMiB);
  check({kernel32, "process", GetProcessHeap(), Maker::reheap, kMost});
  check({kernel32, "private", heap, Maker::reheap, kMost});
  check({kernel32, "at most 8M", maximum, Maker::system, kMost});
  Line line("user value of null");
  tell_user(line, heap, nullptr, true);
}

void check_multiple() {
  Line line("RtlMultipleAllocateHeap");
  if (rtl.MultipleAllocateHeap == nullptr || rtl.MultipleFreeHeap == nullptr) {
    line.say(" is not there");
    return;
  }
  constexpr ULONG kCount = 50;
  static void* blocks[kCount];
  Private heap(kernel32);
  ULONG made = observed(line, [&] { return rtl.MultipleAllocateHeap(heap, HEAP_ZERO_MEMORY, 100, kCount, blocks); });
  line.say(" %lu", made);
  for (ULONG i = 0; i < made; ++i) {
    if (HeapSize(heap, 0, blocks[i]) != 100 || !all_zero(blocks[i], 0, 100)) line.say(" WRONG");
    fill(blocks[i], 100, i);
  }
  for (ULONG i = 0; i < made; ++i)
    if (!holds(blocks[i], 100, i)) line.say(" MIXED UP");
  line.say(" freed %lu", observed(line, [&] { return rtl.MultipleFreeHeap(heap, 0, made, blocks); }));
  line.say(" too large %lu",
           observed(line, [&] { return rtl.MultipleAllocateHeap(heap, 0, kMost / 2, kCount, blocks); }));
}
