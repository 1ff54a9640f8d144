// Memory that one function makes and another one frees: what the system hands out and the caller frees, and blocks of
// LocalAlloc, GlobalAlloc and HeapAlloc that are resized and freed by each other's functions, as programs do.
#include <objbase.h>
#include <sddl.h>
#include <shellapi.h>

#include "checks.h"
#include "comparison/exported.h"

namespace {

void tell_freed(Line& line, HLOCAL left) { line.say(left == nullptr ? " freed" : " not freed"); }

void check_messages() {
  constexpr DWORD kMade = FORMAT_MESSAGE_ALLOCATE_BUFFER | FORMAT_MESSAGE_FROM_STRING | FORMAT_MESSAGE_ARGUMENT_ARRAY;
  for (DWORD least : {DWORD{0}, DWORD{5000}}) {
    Line line("FormatMessage of at least %lu", least);
    wchar_t* text = nullptr;
    DWORD_PTR words[] = {reinterpret_cast<DWORD_PTR>(L"words")};
    DWORD length = observed(line, [&] {
      return FormatMessageW(kMade, L"some %1 more", 0, 0, reinterpret_cast<wchar_t*>(&text), least,
                            reinterpret_cast<va_list*>(words));
    });
    line.say(" %lu", length);
    if (text == nullptr) continue;
    line.say(lstrcmpW(text, L"some words more") == 0 ? " right" : " WRONG");
    line.say(LocalSize(text) >= 2 * lesser(least, length + 1) ? " whole" : " SHORT");
    text = static_cast<wchar_t*>(observed(line, [&] { return LocalReAlloc(text, 9000, LMEM_MOVEABLE); }));
    line.say(lstrcmpW(text, L"some words more") == 0 ? " kept" : " NOT KEPT");
    tell_freed(line, observed(line, [&] { return LocalFree(text); }));
  }
}

void check_arguments() {
  decltype(&CommandLineToArgvW) split = nullptr;
  find(LoadLibraryA("shell32.dll"), "CommandLineToArgvW", split);
  for (bool by_heap : {false, true}) {
    Line line("CommandLineToArgvW freed by %s", by_heap ? "HeapFree" : "LocalFree");
    int count = 0;
    wchar_t** words = observed(line, [&] { return split(LR"(program "two words" \\"x\"" "" last)", &count); });
    for (int word = 1; word < count; ++word) line.say(" <%ls>", words[word]);
    if (by_heap)
      line.say(" %d", observed(line, [&] { return HeapFree(GetProcessHeap(), 0, words); }));
    else
      tell_freed(line, observed(line, [&] { return LocalFree(words); }));
  }
}

void check_others_memory() {
  {
    Line line("ConvertSidToStringSid");
    PSID sid = nullptr;
    wchar_t* text = nullptr;
    line.say(" %d", observed(line, [&] { return ConvertStringSidToSidW(L"S-1-5-32-544", &sid); }));
    line.say(" %d", observed(line, [&] { return ConvertSidToStringSidW(sid, &text); }));
    line.say(lstrcmpW(text, L"S-1-5-32-544") == 0 ? " right" : " WRONG");
    tell_freed(line, observed(line, [&] { return LocalFree(text); }));
    tell_freed(line, observed(line, [&] { return LocalFree(sid); }));
  }
  {
    Line line("GetEnvironmentStrings");
    wchar_t* all = observed(line, [] { return GetEnvironmentStringsW(); });
    line.say(" %d", observed(line, [&] { return FreeEnvironmentStringsW(all); }));
  }
  Line line("StringFromCLSID");
  wchar_t* text = nullptr;
  line.say(" %lx", observed(line, [&] { return StringFromCLSID(IID_IUnknown, &text); }));
  line.say(" %d", lstrlenW(text));
  CoTaskMemFree(text);
}

// As a clipboard's data: a movable block that a stream writes to, lets grow and hands over.
void check_stream(bool own) {
  Line line("a stream on %s movable block", own ? "a given" : "its own");
  HGLOBAL handle = own ? GlobalAlloc(GMEM_MOVEABLE, 10) : nullptr;
  IStream* stream = nullptr;
  line.say(" %lx", observed(line, [&] { return CreateStreamOnHGlobal(handle, !own, &stream); }));
  static unsigned char data[100 * kKiB];
  fill(data, sizeof data, 4);
  for (size_t written = 0; written < sizeof data; written += 10 * kKiB)
    observed(line, [&] { return stream->Write(data + written, 10 * kKiB, nullptr); });
  HGLOBAL of = nullptr;
  line.say(" %lx", observed(line, [&] { return GetHGlobalFromStream(stream, &of); }));
  line.say(own && of != handle ? " another" : " same");
  line.say(holds(GlobalLock(of), sizeof data, 4) ? " right" : " WRONG");
  line.say(" %d", observed(line, [&] { return GlobalUnlock(of); }));
  line.say(" %lu", observed(line, [&] { return stream->Release(); }));
  if (own) tell_freed(line, observed(line, [&] { return GlobalFree(of); }));
}

// ---- one block by three families -------------------------------------------------------------------

void* by_heap(void* block, SIZE_T size) { return HeapReAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, block, size); }
void* by_local(void* block, SIZE_T size) { return LocalReAlloc(block, size, LMEM_MOVEABLE | LMEM_ZEROINIT); }
void* by_global(void* block, SIZE_T size) { return GlobalReAlloc(block, size, GMEM_MOVEABLE | GMEM_ZEROINIT); }

using Make = void*(SIZE_T size);
using Grow = void*(void* block, SIZE_T size);

struct Giver {
  const char* name;
  Make* make;
};
constexpr Giver kGivers[] = {{"LocalAlloc", [](SIZE_T size) -> void* { return LocalAlloc(LMEM_FIXED, size); }},
                             {"GlobalAlloc", [](SIZE_T size) -> void* { return GlobalAlloc(GMEM_FIXED, size); }},
                             {"HeapAlloc", [](SIZE_T size) { return HeapAlloc(GetProcessHeap(), 0, size); }}};

void check_passed_on(const Giver& giver, size_t size) {
  Line line("%s %Iu resized by all", giver.name, size);
  void* block = giver.make(size);
  fill(block, size, 5);
  size_t now = size;
  for (Grow* grow : {by_heap, by_local, by_global, by_heap, by_global, by_local}) {
    size_t larger = 2 * now + 300;
    block = observed(line, [&] { return grow(block, larger); });
    if (!holds(block, size, 5)) line.say(" NOT KEPT");
    if (!all_zero(block, now, larger)) line.say(" NOT ZERO");
    now = larger;
    if (HeapSize(GetProcessHeap(), 0, block) != now || LocalSize(block) != now) line.say(" WRONG SIZE");
  }
  line.say(" valid=%d", observed(line, [&] { return HeapValidate(GetProcessHeap(), 0, block); }));
  line.say(observed(line, [&] { return LocalLock(block); }) == block ? " itself" : " elsewhere");
  line.say(" flags=%x", observed(line, [&] { return LocalFlags(block); }));
  line.say(observed(line, [&] { return LocalHandle(block); }) == block ? " found" : " not found");
  line.say(" %d", observed(line, [&] { return HeapFree(GetProcessHeap(), 0, block); }));
}

void check_freed(const Giver& giver) {
  Line line("%s freed by all", giver.name);
  line.say(" %d", observed(line, [&] { return HeapFree(GetProcessHeap(), 0, giver.make(100)); }));
  tell_freed(line, observed(line, [&] { return LocalFree(giver.make(100)); }));
  tell_freed(line, observed(line, [&] { return GlobalFree(giver.make(100)); }));
}

// A handle's block is one of the process heap's.
void check_handles_block() {
  Line line("the block of a movable handle");
  HLOCAL handle = LocalAlloc(LMEM_MOVEABLE, 100);
  void* block = LocalLock(handle);
  line.say(" size=%Iu", observed(line, [&] { return HeapSize(GetProcessHeap(), 0, block); }));
  line.say(" valid=%d", observed(line, [&] { return HeapValidate(GetProcessHeap(), 0, block); }));
  line.say(observed(line, [&] { return GlobalHandle(block); }) == handle ? " found" : " not found");
  LocalUnlock(handle);
  tell_freed(line, observed(line, [&] { return GlobalFree(handle); }));
}

}  // namespace

void check_given() {
  check_messages();
  check_arguments();
  check_others_memory();
  check_stream(false);
  check_stream(true);
  for (const Giver& giver : kGivers) {
    for (size_t size : {size_t{1}, size_t{100}, size_t{4000}, 100 * kKiB}) check_passed_on(giver, size);
    check_freed(giver);
  }
  check_handles_block();
}
