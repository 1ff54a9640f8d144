#include <objbase.h>
#include <oleauto.h>

#include "checks.h"

namespace {

constexpr size_t kAskedFor[] = {0, 1, 15, 16, 17, 100, 1000, 4096, 5000, 32769, 100000, kMiB, 8 * kMiB};

void tell_task_block(Line& line, IMalloc* heap, const void* block) {
  line.say(block == nullptr ? " null" : " block");
  if (block == nullptr) return;
  if (!is_aligned(block)) line.say(" misaligned");
  line.say(" size=%Iu", observed(line, [&] { return heap->GetSize(const_cast<void*>(block)); }));
  line.say(" ours=%d", observed(line, [&] { return heap->DidAlloc(const_cast<void*>(block)); }));
  expect_maker(line, Maker::reheap, block);
}

// A call that gives nothing.
template <typename F> void seen(Line& line, F call) {
  observed(line, [&] {
    call();
    return 0;
  });
}

void check_task_blocks(IMalloc* heap) {
  for (size_t size : kAskedFor) {
    Line line("CoTaskMemAlloc %Iu", size);
    void* block = observed(line, [&] { return CoTaskMemAlloc(size); });
    tell_task_block(line, heap, block);
    fill(block, size, 1);
    block = observed(line, [&] { return CoTaskMemRealloc(block, size + 777); });
    tell_task_block(line, heap, block);
    if (!holds(block, size, 1)) line.say(" NOT KEPT");
    block = observed(line, [&] { return CoTaskMemRealloc(block, size / 2 + 1); });
    tell_task_block(line, heap, block);
    seen(line, [&] { CoTaskMemFree(block); });
  }
  for (const Huge& huge : kHuge) {
    Line line("CoTaskMemAlloc %s", huge.name);
    line.say(observed(line, [&] { return CoTaskMemAlloc(huge.size); }) == nullptr ? " null" : " block");
    void* block = CoTaskMemAlloc(100);
    line.say(observed(line, [&] { return CoTaskMemRealloc(block, huge.size); }) == nullptr ? " null" : " block");
    tell_task_block(line, heap, block);
    CoTaskMemFree(block);
  }
  {
    Line line("CoTaskMemRealloc null, to nothing, CoTaskMemFree null");
    void* block = observed(line, [&] { return CoTaskMemRealloc(nullptr, 100); });
    tell_task_block(line, heap, block);
    line.say(observed(line, [&] { return CoTaskMemRealloc(block, 0); }) == nullptr ? " null" : " block");
    line.say(observed(line, [&] { return CoTaskMemRealloc(nullptr, 0); }) == nullptr ? " null" : " block");
    seen(line, [] { CoTaskMemFree(nullptr); });
  }
}

void check_interface(IMalloc* heap) {
  Line line("IMalloc");
  void* block = observed(line, [&] { return heap->Alloc(100); });
  tell_task_block(line, heap, block);
  block = observed(line, [&] { return heap->Realloc(block, 5000); });
  tell_task_block(line, heap, block);
  seen(line, [&] { heap->Free(block); });
  line.say(" of null %ld", static_cast<long>(heap->GetSize(nullptr)));
  line.say(" %d", heap->DidAlloc(nullptr));
  int local = 0;
  line.say(" of the stack %d", observed(line, [&] { return heap->DidAlloc(&local); }));
  seen(line, [&] { heap->HeapMinimize(); });
  block = HeapAlloc(GetProcessHeap(), 0, 100);
  line.say(" of the process heap %d", heap->DidAlloc(block));
  seen(line, [&] { CoTaskMemFree(block); });
}

void tell_string(Line& line, BSTR string, const wchar_t* text, UINT length) {
  line.say(string == nullptr ? " null" : " string");
  if (string == nullptr) return;
  line.say(" %u %u", SysStringLen(string), SysStringByteLen(string));
  if (string[length] != 0) line.say(" UNENDED");
  for (UINT i = 0; text != nullptr && i < length; ++i) {
    if (string[i] == text[i]) continue;
    line.say(" WRONG");
    return;
  }
}

wchar_t long_text[70001];

void check_string(UINT length) {
  Line line("SysAllocStringLen %u", length);
  BSTR string = observed(line, [&] { return SysAllocStringLen(long_text, length); });
  tell_string(line, string, long_text, length);
  INT done = observed(line, [&] { return SysReAllocStringLen(&string, long_text + 1, length + 999); });
  line.say(" %d", done);
  tell_string(line, string, long_text + 1, length + 999);
  done = observed(line, [&] { return SysReAllocStringLen(&string, long_text, length / 2); });
  line.say(" %d", done);
  tell_string(line, string, long_text, length / 2);
  done = observed(line, [&] { return SysReAllocString(&string, L"short"); });
  line.say(" %d", done);
  tell_string(line, string, L"short", 5);
  seen(line, [&] { SysFreeString(string); });
}

}  // namespace

void check_task_memory() {
  IMalloc* heap = nullptr;
  if (FAILED(CoGetMalloc(1, &heap))) {
    fail("CoGetMalloc failed");
    return;
  }
  check_task_blocks(heap);
  check_interface(heap);
  heap->Release();
}

void check_strings() {
  for (UINT i = 0; i < 70000; ++i) long_text[i] = static_cast<wchar_t>(i % 30000 + 1);
  for (UINT length : {0u, 1u, 2u, 7u, 8u, 15u, 16u, 50u, 51u, 500u, 2047u, 2048u, 30000u, 69000u}) check_string(length);
  {
    Line line("SysAllocString");
    BSTR string = observed(line, [] { return SysAllocString(L"reheap"); });
    tell_string(line, string, L"reheap", 6);
    SysFreeString(string);
    line.say(observed(line, [] { return SysAllocString(nullptr); }) == nullptr ? " null" : " string");
  }
  {
    Line line("SysAllocStringLen of null");
    BSTR string = observed(line, [] { return SysAllocStringLen(nullptr, 100); });
    tell_string(line, string, nullptr, 100);
    SysFreeString(string);
  }
  for (UINT bytes : {0u, 1u, 3u, 8u, 101u, 4097u}) {
    Line line("SysAllocStringByteLen %u", bytes);
    BSTR string = observed(line, [&] { return SysAllocStringByteLen(reinterpret_cast<char*>(long_text), bytes); });
    line.say(" %u %u", SysStringByteLen(string), SysStringLen(string));
    line.say(reinterpret_cast<char*>(string)[bytes] == 0 ? "" : " UNENDED");
    SysFreeString(string);
  }
  {
    Line line("strings of null");
    line.say(" %u %u", SysStringLen(nullptr), SysStringByteLen(nullptr));
    seen(line, [] { SysFreeString(nullptr); });
  }
  {
    Line line("SysAllocStringLen too much");
    for (UINT length : {0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu})
      line.say(observed(line, [&] { return SysAllocStringLen(nullptr, length); }) == nullptr ? " null" : " string");
  }
  Line line("2000 strings");
  static BSTR strings[2000];
  bool right = true;
  for (int times = 0; times < 3; ++times) {
    for (UINT i = 0; i < 2000; ++i) strings[i] = SysAllocStringLen(long_text + i, i % 700);
    for (UINT i = 0; i < 2000; ++i) {
      right = right && SysStringLen(strings[i]) == i % 700 && (i % 700 == 0 || strings[i][0] == long_text[i]);
      SysFreeString(strings[i]);
    }
  }
  line.say(right ? " right" : " WRONG");
}
