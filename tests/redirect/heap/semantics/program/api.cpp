#include "api.h"

namespace {

template <typename F>
bool find(F& function, HMODULE module, const char* name) {
  function = reinterpret_cast<F>(reinterpret_cast<void*>(GetProcAddress(module, name)));
  return function != nullptr;
}

// What gives a BOOLEAN or takes other parameters in ntdll is called through functions that even that out.
struct {
  decltype(&HeapFree) free;
  decltype(&HeapValidate) validate;
  decltype(&HeapLock) lock;
  decltype(&HeapUnlock) unlock;
  decltype(&HeapCreate) create;
  decltype(&HeapDestroy) destroy;
} heap;

struct {
  BOOLEAN(WINAPI* free)(HANDLE, ULONG, void*);
  BOOLEAN(WINAPI* validate)(HANDLE, ULONG, const void*);
  BOOLEAN(WINAPI* lock)(HANDLE);
  BOOLEAN(WINAPI* unlock)(HANDLE);
  HANDLE(WINAPI* create)(ULONG, void*, SIZE_T, SIZE_T, void*, void*);
  HANDLE(WINAPI* destroy)(HANDLE);
} native;

bool find_kernel32(HMODULE module) {
  return find(kernel32.alloc, module, "HeapAlloc") && find(kernel32.realloc, module, "HeapReAlloc") &&
         find(kernel32.size, module, "HeapSize") && find(kernel32.compact, module, "HeapCompact") &&
         find(heap.free, module, "HeapFree") && find(heap.validate, module, "HeapValidate") &&
         find(heap.lock, module, "HeapLock") && find(heap.unlock, module, "HeapUnlock") &&
         find(heap.create, module, "HeapCreate") && find(heap.destroy, module, "HeapDestroy");
}

bool find_ntdll(HMODULE module) {
  find(rtl.GetUserInfoHeap, module, "RtlGetUserInfoHeap");
  find(rtl.SetUserValueHeap, module, "RtlSetUserValueHeap");
  find(rtl.SetUserFlagsHeap, module, "RtlSetUserFlagsHeap");
  find(rtl.MultipleAllocateHeap, module, "RtlMultipleAllocateHeap");
  find(rtl.MultipleFreeHeap, module, "RtlMultipleFreeHeap");
  find(rtl.ZeroHeap, module, "RtlZeroHeap");
  return find(ntdll.alloc, module, "RtlAllocateHeap") && find(ntdll.realloc, module, "RtlReAllocateHeap") &&
         find(ntdll.size, module, "RtlSizeHeap") && find(ntdll.compact, module, "RtlCompactHeap") &&
         find(native.free, module, "RtlFreeHeap") && find(native.validate, module, "RtlValidateHeap") &&
         find(native.lock, module, "RtlLockHeap") && find(native.unlock, module, "RtlUnlockHeap") &&
         find(native.create, module, "RtlCreateHeap") && find(native.destroy, module, "RtlDestroyHeap") &&
         find(rtl.GetProcessHeaps, module, "RtlGetProcessHeaps") &&
         find(rtl.QueryHeapInformation, module, "RtlQueryHeapInformation") && find(rtl.WalkHeap, module, "RtlWalkHeap");
}

constexpr ULONG kGrowable = 2;  // what HeapCreate adds where no maximum is named

}  // namespace

Door kernel32 = {"kernel32",
                 nullptr,
                 nullptr,
                 [](HANDLE h, DWORD flags, void* block) { return heap.free(h, flags, block); },
                 nullptr,
                 [](HANDLE h, DWORD flags, const void* block) { return heap.validate(h, flags, block); },
                 [](HANDLE h) { return heap.lock(h); },
                 [](HANDLE h) { return heap.unlock(h); },
                 nullptr,
                 [](DWORD flags, SIZE_T initial, SIZE_T maximum) { return heap.create(flags, initial, maximum); },
                 [](HANDLE h) { return heap.destroy(h) != 0; }};

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
  return find(version, GetModuleHandleA("ntdll.dll"), "wine_get_version") ? "Wine" : "Windows";
}
