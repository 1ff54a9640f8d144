#include "checks.h"

namespace {

constexpr auto kCompatibility = HeapCompatibilityInformation;
constexpr auto kTermination = HeapEnableTerminationOnCorruption;
constexpr auto kOptimize = static_cast<HEAP_INFORMATION_CLASS>(3);
constexpr auto kUnknown = static_cast<HEAP_INFORMATION_CLASS>(77);

void tell_query(const char* name, HANDLE heap, HEAP_INFORMATION_CLASS what, SIZE_T size) {
  Line line("query %s class %d into %Iu bytes", name, what, size);
  ULONG value[2] = {99, 99};
  SIZE_T needed = 0;
  line.say(" %d", observed(line, [&] { return HeapQueryInformation(heap, what, value, size, &needed); }));
  line.say(" value=%lu needed=%Iu", value[0], needed);
}

void tell_set(const char* name, HANDLE heap, HEAP_INFORMATION_CLASS what, ULONG value, SIZE_T size) {
  Line line("set %s class %d to %lu in %Iu bytes", name, what, value, size);
  ULONG data[4] = {value};
  line.say(" %d", observed(line, [&] { return HeapSetInformation(heap, what, size == 0 ? nullptr : data, size); }));
}

void check(const char* name, HANDLE heap) {
  tell_query(name, heap, kCompatibility, sizeof(ULONG));
  tell_query(name, heap, kCompatibility, 2);
  tell_query(name, heap, kUnknown, sizeof(ULONG));
  for (ULONG value : {0ul, 1ul, 2ul, 9ul}) {
    tell_set(name, heap, kCompatibility, value, sizeof value);
    tell_query(name, heap, kCompatibility, sizeof(ULONG));
  }
  tell_set(name, heap, kCompatibility, 2, 2);
  tell_set(name, heap, kUnknown, 2, sizeof(ULONG));
  Line line("%s after it was set", name);
  void* block = HeapAlloc(heap, HEAP_ZERO_MEMORY, 100);
  line.say(" size=%Iu zero=%d", HeapSize(heap, 0, block), all_zero(block, 0, 100));
  line.say(" freed=%d", observed(line, [&] { return HeapFree(heap, 0, block); }));
}

}  // namespace

void check_information() {
  check("private", Private(kernel32));
  check("unserialized", Private(kernel32, HEAP_NO_SERIALIZE));
  check("at most 1M", Private(kernel32, 0, kMiB));
  check("executable", Private(kernel32, HEAP_CREATE_ENABLE_EXECUTE));
  check("process", GetProcessHeap());
  tell_query("no heap", nullptr, kCompatibility, sizeof(ULONG));
  {
    Line line("RtlZeroHeap");
    if (rtl.ZeroHeap == nullptr) {
      line.say(" is not there");
    } else {
      Private heap(kernel32);
      void* block = HeapAlloc(heap, 0, 100);
      fill(block, 100, 3);
      LONG status = observed(line, [&] { return rtl.ZeroHeap(heap, 0); });
      line.say(" %08lx%s", static_cast<unsigned long>(status), holds(block, 100, 3) ? " kept" : " NOT KEPT");
    }
  }
  ULONG optimize[2] = {1, 0};  // version and flags
  Line line("set no heap class 3");
  line.say(" %d", observed(line, [&] { return HeapSetInformation(nullptr, kOptimize, optimize, sizeof optimize); }));
  (void)kTermination;  // set, it would end this program at the first bad pointer
}
