/* Stands in for reheap.dll: exports ordinal 1, and writes one line about each process it gets into to the file
   that PROBE_FILE names. Links kernel32 and ntdll alone, as reheap.dll does. */

#include <windows.h>

#include <winternl.h>

PEB* NTAPI RtlGetCurrentPeb(void);

__declspec(dllexport) void probe_ordinal_one(void) {}

/* What reheap doctor looks for before it lets a library in: "REHEAP_DOCTOR". */
static const WCHAR doctor_variable[] = L"REHEAP_DOCTOR";
const char probe_mark[] = "REHEAP_DOCTOR";

static char line[512];
static DWORD length;

static void put(const char* text) {
  while (*text != 0 && length < sizeof line) line[length++] = *text++;
}

static int holds(const UNICODE_STRING* name, const char* part) {
  for (USHORT begin = 0; begin < name->Length / sizeof(WCHAR); ++begin) {
    USHORT at = 0;
    while (part[at] != 0 && begin + at < name->Length / sizeof(WCHAR) && (name->Buffer[begin + at] | 0x20) == part[at])
      ++at;
    if (part[at] == 0) return 1;
  }
  return 0;
}

/* An entry of the loader's list of modules in the order of their initialisation. */
typedef struct {
  LIST_ENTRY link;
  PVOID base;
  PVOID entry_point;
  SIZE_T size;
  UNICODE_STRING path;
} Initialised;

/* Whether a C runtime's entry point was called before ours. */
static int runtime_came_first(HMODULE self) {
  const LIST_ENTRY* head = &RtlGetCurrentPeb()->Ldr->InMemoryOrderModuleList + 1;
  for (const LIST_ENTRY* at = head->Flink; at != head; at = at->Flink) {
    const Initialised* module = (const Initialised*)at;
    if (module->base == (PVOID)self) break;
    if (holds(&module->path, "ucrtbase") || holds(&module->path, "msvcrt") || holds(&module->path, "crt_order"))
      return 1;
  }
  return 0;
}

static void append(const WCHAR* variable, DWORD how) {
  WCHAR path[MAX_PATH];
  const DWORD size = GetEnvironmentVariableW(variable, path, MAX_PATH);
  if (size == 0 || size >= MAX_PATH) return;
  HANDLE file = CreateFileW(path, FILE_APPEND_DATA, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, how, 0, NULL);
  DWORD done;
  WriteFile(file, line, length, &done, NULL);
  CloseHandle(file);
}

static void answer_doctor(void) {
  if (GetEnvironmentVariableW(doctor_variable, NULL, 0) == 0) return;
  length = 0;
  put("reheap: nothing was replaced\r\n");
  DWORD done;
  WriteFile(GetStdHandle(STD_ERROR_HANDLE), line, length, &done, NULL);
  length = 0;
  put("{\"version\": \"" PROBE_VERSION "\", \"overridden\": true}");
  append(doctor_variable, OPEN_ALWAYS);
  TerminateProcess(GetCurrentProcess(), 0);
}

#ifdef PROBE_FOLLOWS
void probe_follow(void);
#else
static void probe_follow(void) {}
#endif

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved) {
  (void)reserved;
  if (reason != DLL_PROCESS_ATTACH) return TRUE;
  put(runtime_came_first(self) ? "after a runtime" : "before any runtime");
  put(sizeof(void*) == 8 ? ", 64-bit\n" : ", 32-bit\n");
  append(L"PROBE_FILE", OPEN_ALWAYS);
  answer_doctor();
  probe_follow();
  return TRUE;
}
