#include "modules.h"

#include <windows.h>
#include <winternl.h>

namespace rh::redirect {

namespace {

constinit ModuleEvents g_events = {};
constinit void* g_cookie = nullptr;

// The loader's record of a DLL, whose order of members has stood since Windows NT; winternl.h leaves the name out.
struct LoaderEntry {
  LIST_ENTRY load_order;
  LIST_ENTRY memory_order;
  LIST_ENTRY initialization_order;
  void* base;
  void* entry_point;
  ULONG size;
  UNICODE_STRING full_name;
  UNICODE_STRING base_name;
};

// As documented with LdrRegisterDllNotification, which has no header.
struct Notification {
  ULONG flags;
  const UNICODE_STRING* full_name;
  const UNICODE_STRING* base_name;
  void* base;
  ULONG size;
};
constexpr ULONG kLoaded = 1;
constexpr ULONG kUnloaded = 2;
using Notify = void(CALLBACK*)(ULONG reason, const Notification* data, void* context);
using Register = LONG(NTAPI*)(ULONG flags, Notify notify, void* context, void** cookie);
using Unregister = LONG(NTAPI*)(void* cookie);

template <typename Function> Function function_of_ntdll(const char* name) {
  FARPROC code = GetProcAddress(GetModuleHandleW(L"ntdll.dll"), name);
  return reinterpret_cast<Function>(reinterpret_cast<void*>(code));
}

Module module_of(const void* base, const UNICODE_STRING& name) {
  return {base, name.Buffer, name.Length / sizeof(wchar_t)};
}

void CALLBACK notify(ULONG reason, const Notification* data, void*) {
  if (reason == kLoaded) g_events.came(module_of(data->base, *data->base_name));
  if (reason == kUnloaded) g_events.went(data->base);
}

}  // namespace

void for_each_module(void (*came)(const Module& module)) {
  auto process = function_of_ntdll<PEB*(NTAPI*)()>("RtlGetCurrentPeb");
  // The one list that winternl.h knows.
  LIST_ENTRY* head = &process()->Ldr->InMemoryOrderModuleList;
  for (LIST_ENTRY* link = head->Flink; link != head; link = link->Flink) {
    const auto* entry = CONTAINING_RECORD(link, LoaderEntry, memory_order);
    if (entry->base != nullptr) came(module_of(entry->base, entry->base_name));
  }
}

bool watch_modules(const ModuleEvents& events) {
  auto start = function_of_ntdll<Register>("LdrRegisterDllNotification");
  if (start == nullptr) return false;
  g_events = events;
  return start(0, notify, nullptr, &g_cookie) == 0;
}

void stop_watching() {
  if (g_cookie == nullptr) return;
  function_of_ntdll<Unregister>("LdrUnregisterDllNotification")(g_cookie);
  g_cookie = nullptr;
}

}  // namespace rh::redirect
