/* What the peers name of the C runtime and of DLLs above kernel32, for a DLL that stands before all of these. Declared
 * here and not by the headers, which say that it comes from a DLL. */
#define WIN32_LEAN_AND_MEAN
#include <stddef.h>
#include <stdint.h>
#include <windows.h>

/* ---- thread-local variables, which a C runtime's start-up code would bring ---- */

int _tls_index;
__attribute__((section(".tls"))) char peer_tls_begin[8];
__attribute__((section(".tls$ZZZ"))) char peer_tls_end[8];
static const PIMAGE_TLS_CALLBACK no_callbacks[] = {NULL};
const IMAGE_TLS_DIRECTORY _tls_used = {
    .StartAddressOfRawData = (ULONG_PTR)peer_tls_begin,
    .EndAddressOfRawData = (ULONG_PTR)peer_tls_end,
    .AddressOfIndex = (ULONG_PTR)&_tls_index,
    .AddressOfCallBacks = (ULONG_PTR)no_callbacks,
};

/* ---- what they call, by the names that the linker knows ---- */

#define NAMED(name) __asm__(#name)

void* stream_of(unsigned number) NAMED(__acrt_iob_func);
void* stream_of(unsigned number) { return (void*)(uintptr_t)(number + 1); }

int write_message(const char* text, void* stream) NAMED(fputs);
int write_message(const char* text, void* stream) {
  DWORD written = 0;
  (void)stream;
  WriteFile(GetStdHandle(STD_ERROR_HANDLE), text, (DWORD)lstrlenA(text), &written, NULL);
  return 0;
}

int* place_of_error(void) NAMED(_errno);
int* place_of_error(void) {
  static _Thread_local int error;
  return &error;
}

void give_up(void) NAMED(abort);
void give_up(void) { TerminateProcess(GetCurrentProcess(), 134); }

/* mimalloc's seed: what it asks otherwise lies in a DLL that cannot be loaded this early. */
BOOLEAN fill_random(void* buffer, ULONG size) NAMED(SystemFunction036);
BOOLEAN fill_random(void* buffer, ULONG size) {
  for (ULONG i = 0; i < size; i++) {
    LARGE_INTEGER count;
    QueryPerformanceCounter(&count);
    uint64_t mixed = ((uint64_t)count.QuadPart + i) * UINT64_C(0x9E3779B97F4A7C15);
    ((uint8_t*)buffer)[i] = (uint8_t)(mixed >> 56);
  }
  return TRUE;
}

/* ---- what they name and do not come to: large pages, which are off; relatives of malloc that nobody calls ---- */

#define NEVER(name)                     \
  void* never_##name(void) NAMED(name); \
  void* never_##name(void) { return NULL; }

NEVER(OpenProcessToken)
NEVER(LookupPrivilegeValueA)
NEVER(LookupPrivilegeValueW)
NEVER(AdjustTokenPrivileges)
NEVER(getenv)
NEVER(_wgetenv)
NEVER(strtol)
NEVER(free)
