#include "api.h"

#include "comparison/exported.h"

namespace {

// What gives a BOOLEAN or takes other parameters in ntdll is called through functions that even that out.
struct {
  decltype(&HeapFree) free;
  decltype(&HeapValidate) validate;
  decltype(&HeapLock) lock;
  decltype(&HeapUnlock) unlock;
  decltype(&HeapCreate) create;
  decltype(&HeapDestroy) destroy;
} heap_functions;

struct {
  BOOLEAN(WINAPI* free)(HANDLE, ULONG, void*);
  BOOLEAN(WINAPI* validate)(HANDLE, ULONG, const void*);
  BOOLEAN(WINAPI* lock)(HANDLE);
  BOOLEAN(WINAPI* unlock)(HANDLE);
  HANDLE(WINAPI* create)(ULONG, void*, SIZE_T, SIZE_T, void*, void*);
  HANDLE(WINAPI* destroy)(HANDLE);
} native;

bool find_kernel32(HMODULE module) {
  return find(module, "HeapAlloc", kernel32.alloc) && find(module, "HeapReAlloc", kernel32.realloc) &&
         find(module, "HeapSize", kernel32.size) && find(module, "HeapCompact", kernel32.compact) &&
         find(module, "HeapFree", heap_functions.free) && find(module, "HeapValidate", heap_functions.validate) &&
         find(module, "HeapLock", heap_functions.lock) && find(module, "HeapUnlock", heap_functions.unlock) &&
         find(module, "HeapCreate", heap_functions.create) && find(module, "HeapDestroy", heap_functions.destroy);
}

bool find_ntdll(HMODULE module) {
  find(module, "RtlGetUserInfoHeap", rtl.GetUserInfoHeap);
  find(module, "RtlSetUserValueHeap", rtl.SetUserValueHeap);
  find(module, "RtlSetUserFlagsHeap", rtl.SetUserFlagsHeap);
  find(module, "RtlMultipleAllocateHeap", rtl.MultipleAllocateHeap);
  find(module, "RtlMultipleFreeHeap", rtl.MultipleFreeHeap);
  find(module, "RtlZeroHeap", rtl.ZeroHeap);
  return find(module, "RtlAllocateHeap", ntdll.alloc) && find(module, "RtlReAllocateHeap", ntdll.realloc) &&
         find(module, "RtlSizeHeap", ntdll.size) && find(module, "RtlCompactHeap", ntdll.compact) &&
         find(module, "RtlFreeHeap", native.free) && find(module, "RtlValidateHeap", native.validate) &&
         find(module, "RtlLockHeap", native.lock) && find(module, "RtlUnlockHeap", native.unlock) &&
         find(module, "RtlCreateHeap", native.create) && find(module, "RtlDestroyHeap", native.destroy) &&
         find(module, "RtlGetProcessHeaps", rtl.GetProcessHeaps) &&
         find(module, "RtlQueryHeapInformation", rtl.QueryHeapInformation) && find(module, "RtlWalkHeap", rtl.WalkHeap);
}

constexpr ULONG kGrowable = 2;  // what HeapCreate adds where no maximum is named

}  // namespace

Door kernel32 = {
    "kernel32",
    nullptr,
    nullptr,
    [](HANDLE h, DWORD flags, void* block) { return heap_functions.free(h, flags, block); },
    nullptr,
    [](HANDLE h, DWORD flags, const void* block) { return heap_functions.validate(h, flags, block); },
    [](HANDLE h) { return heap_functions.lock(h); },
    [](HANDLE h) { return heap_functions.unlock(h); },
    nullptr,
    [](DWORD flags, SIZE_T initial, SIZE_T maximum) { return heap_functions.create(flags, initial, maximum); },
    [](HANDLE h) { return heap_functions.destroy(h) != 0; }};

Door ntdll = {"ntdll",
              nullptr,
              nullptr,
              [](HANDLE h, DWORD flags, void* block) -> BOOL { return native.free(h, flags, block); },
              nullptr,
              [](HANDLE h, DWORD flags, const void* block) -> BOOL { return native.validate(h, flags, block); },
              [](HANDLE h) -> BOOL { return native.lock(h); },
              [](HANDLE h) -> BOOL { return native.unlock(h); },
              nullptr,
              [](DWORD flags, SIZE_T initial, SIZE_T maximum) {
                return native.create(maximum == 0 ? flags | kGrowable : flags, nullptr, maximum, initial, nullptr,
                                     nullptr);
              },
              [](HANDLE h) { return native.destroy(h) == nullptr; }};

Rtl rtl;

bool find_functions() {
  return find_kernel32(GetModuleHandleA("kernel32.dll")) && find_ntdll(GetModuleHandleA("ntdll.dll"));
}

const char* system_name() {
  const char*(CDECL * version)();
  return find(GetModuleHandleA("ntdll.dll"), "wine_get_version", version) ? "Wine" : "Windows";
}
