#include "spy.h"

#include "comparison/line.h"
#include "comparison/reheap.h"
#include "crt.h"

namespace {

decltype(&HeapFree) heap_free;
decltype(&HeapReAlloc) heap_realloc;
decltype(&HeapSize) heap_size;
int frees;

void check(const char* function, const void* block) {
  if (reheap_owns(block)) fail("a block of reheap's reached the CRT's %s", function);
}

BOOL WINAPI spy_free(HANDLE heap, DWORD flags, void* block) {
  check("HeapFree", block);
  BOOL taken = heap_free(heap, flags, block);
  if (taken && block != nullptr) frees++;
  return taken;
}

void* WINAPI spy_realloc(HANDLE heap, DWORD flags, void* block, SIZE_T size) {
  check("HeapReAlloc", block);
  return heap_realloc(heap, flags, block, size);
}

SIZE_T WINAPI spy_size(HANDLE heap, DWORD flags, const void* block) {
  check("HeapSize", block);
  return heap_size(heap, flags, block);
}

template <typename T> T* at(DWORD offset) { return reinterpret_cast<T*>(reinterpret_cast<char*>(crt.module) + offset); }

template <typename F> bool divert(ULONG_PTR* slot, const char* name, const char* wanted, F& original, F spy) {
  if (lstrcmpA(name, wanted) != 0) return false;
  DWORD old;
  VirtualProtect(slot, sizeof *slot, PAGE_READWRITE, &old);
  original = reinterpret_cast<F>(*slot);
  *slot = reinterpret_cast<ULONG_PTR>(spy);
  VirtualProtect(slot, sizeof *slot, old, &old);
  return true;
}

void divert_import(ULONG_PTR* slot, const char* name) {
  divert(slot, name, "HeapFree", heap_free, spy_free) || divert(slot, name, "HeapReAlloc", heap_realloc, spy_realloc) ||
      divert(slot, name, "HeapSize", heap_size, spy_size);
}

void divert_imports(const IMAGE_IMPORT_DESCRIPTOR& from) {
  const IMAGE_THUNK_DATA* names = at<IMAGE_THUNK_DATA>(from.OriginalFirstThunk);
  ULONG_PTR* slots = at<ULONG_PTR>(from.FirstThunk);
  for (size_t i = 0; names[i].u1.AddressOfData != 0; i++) {
    if (IMAGE_SNAP_BY_ORDINAL(names[i].u1.Ordinal)) continue;
    DWORD offset = static_cast<DWORD>(names[i].u1.AddressOfData);
    divert_import(slots + i, at<IMAGE_IMPORT_BY_NAME>(offset)->Name);
  }
}

}  // namespace

bool spy_on_crt() {
  DWORD headers = static_cast<DWORD>(at<IMAGE_DOS_HEADER>(0)->e_lfanew);
  const auto& directory = at<IMAGE_NT_HEADERS>(headers)->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT];
  for (auto* from = at<IMAGE_IMPORT_DESCRIPTOR>(directory.VirtualAddress); from->Name != 0; from++)
    divert_imports(*from);
  return heap_free != nullptr && heap_realloc != nullptr && heap_size != nullptr;
}

int take_frees() {
  int seen = frees;
  frees = 0;
  return seen;
}
