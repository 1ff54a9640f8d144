// For a program or DLL that linked this library: blocks that neither this heap nor a copy of it made come from the C
// runtime DLLs in the process, or from the process's heap.
#include "entry/foreign.h"

#include <errno.h>

#include "entry/lifetime.h"
#include "entry/windows/host.h"
#include "heap/heap.h"
#include "platform/windows/system.h"

extern "C" {
int _callnewh(size_t size);
#if defined(_UCRT) || !defined(__MINGW32__)
int _query_new_mode(void);
#else
int _query_new_mode(void) __asm__("\"?_query_new_mode@@YAHXZ\"");  // as msvcrt's import library has it
#endif
#if defined(_UCRT)
void _invalid_parameter_noinfo(void);
#endif
}

namespace rh {

namespace {

constexpr const wchar_t* kRuntimes[] = {
    L"ucrtbase.dll", L"msvcrt.dll",  L"msvcr120.dll", L"msvcr110.dll", L"msvcr100.dll",
    L"msvcr90.dll",  L"msvcr80.dll", L"msvcr71.dll",  L"msvcr70.dll",  L"ucrtbased.dll",
};

template <typename Function> Function exported(HMODULE module, const char* name) {
  return reinterpret_cast<Function>(reinterpret_cast<void*>(GetProcAddress(module, name)));
}

// The runtime whose heap the block lies in, or null.
HMODULE maker_of(const void* block) {
  for (const wchar_t* name : kRuntimes) {
    HMODULE module = GetModuleHandleW(name);
    if (module == nullptr) continue;
    auto heap_of = exported<intptr_t (*)()>(module, "_get_heap_handle");
    if (heap_of == nullptr) continue;
    HANDLE heap = reinterpret_cast<HANDLE>(heap_of());
    if (heap != nullptr && HeapValidate(heap, 0, block)) return module;
  }
  return nullptr;
}

// What made the block does with it what its function `name` does; null: nobody is known to have made it.
template <typename Function> Function made_by(const void* block, const char* name) {
  platform::KeepLastError keep;
  HMODULE module = maker_of(block);
  return module != nullptr ? exported<Function>(module, name) : nullptr;
}

bool in_process_heap(const void* block) { return HeapValidate(GetProcessHeap(), 0, block) != FALSE; }

void free_foreign(void* block) {
  if (auto function = made_by<void (*)(void*)>(block, "free")) return function(block);
  if (!in_process_heap(block)) fail_invalid("free", block);
  HeapFree(GetProcessHeap(), 0, block);
}

void* realloc_foreign(void* block, size_t size) {
  if (auto function = made_by<void* (*)(void*, size_t)>(block, "realloc")) return function(block, size);
  if (!in_process_heap(block)) fail_invalid("realloc", block);
  return HeapReAlloc(GetProcessHeap(), 0, block, size);
}

void* recalloc_foreign(void* block, size_t count, size_t size) {
  if (auto function = made_by<void* (*)(void*, size_t, size_t)>(block, "_recalloc"))
    return function(block, count, size);
  if (!in_process_heap(block)) fail_invalid("_recalloc", block);
  return HeapReAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, block, count * size);
}

void* expand_foreign(void* block, size_t size) {
  if (auto function = made_by<void* (*)(void*, size_t)>(block, "_expand")) return function(block, size);
  if (!in_process_heap(block)) fail_invalid("_expand", block);
  return HeapReAlloc(GetProcessHeap(), HEAP_REALLOC_IN_PLACE_ONLY, block, size);
}

size_t msize_foreign(void* block) {
  if (auto function = made_by<size_t (*)(void*)>(block, "_msize")) return function(block);
  if (!in_process_heap(block)) fail_invalid("_msize", block);
  return HeapSize(GetProcessHeap(), 0, block);
}

// Blocks of a runtime's aligned functions lie within blocks of its heap, where no heap recognises them; in Microsoft's
// the word before tells where they begin.
void* start_of_aligned(void* block) {
  uintptr_t word = reinterpret_cast<uintptr_t>(block) & ~(sizeof(void*) - 1);
  return reinterpret_cast<void**>(word)[-1];
}

void aligned_free_foreign(void* block) {
  free_foreign(made_by<void (*)(void*)>(block, "free") != nullptr ? block : start_of_aligned(block));
}

// The runtime's own are imported: their addresses are not known when this is compiled.
int* errno_address() { return _errno(); }
int query_new_mode() { return _query_new_mode(); }
int callnewh(size_t size) { return _callnewh(size); }
#if defined(_UCRT)
void invalid_parameter() { _invalid_parameter_noinfo(); }
#endif

}  // namespace

constinit const crt::Host g_own_host = [] {
  crt::Host host = {};
  host.free = free_foreign;
  host.realloc = realloc_foreign;
  host.recalloc = recalloc_foreign;
  host.expand = expand_foreign;
  host.msize = msize_foreign;
  host.aligned_free = aligned_free_foreign;
  host.errno_address = errno_address;
  host.query_new_mode = query_new_mode;
  host.callnewh = callnewh;
#if defined(_UCRT)
  host.invalid_parameter = invalid_parameter;
#endif
  return host;
}();

constinit const Foreign g_foreign = {
    .resolve = [] { lifetime::anchor(); },
    .free = [](void* block) { crt::free(g_own_host, block); },
    .reallocate = [](void* block, size_t size) { return crt::realloc(g_own_host, block, size); },
    .usable_size = [](void* block) { return crt::msize(g_own_host, block); },
    .set_errno = [](int error) { *_errno() = error; },
};

}  // namespace rh
