/* Comes into the launcher by a launcher, and there stands before the functions that OBSTACLE names, in the launcher's
   own import table: the system then answers as Windows does where Wine cannot.

     protected    another process's memory cannot be read
     signed       its policy admits only Microsoft's libraries
     guarded      its policy admits only libraries with a table for control-flow guard
     stacks       its policy admits only libraries made for shadow stacks
     remote       its policy admits no libraries from other machines, and all drives are such
     code         its policy forbids new code
     lenient      it has all policies, but for what those keep out
     full         there is no address space above its image
     locked       its memory cannot be written
*/

#include <windows.h>

__declspec(dllexport) void obstacles_ordinal_one(void) {}

static BOOL WINAPI deny_reading(HANDLE process, LPCVOID from, LPVOID to, SIZE_T size, SIZE_T* done) {
  (void)process, (void)from, (void)to, (void)size, (void)done;
  SetLastError(ERROR_ACCESS_DENIED);
  return FALSE;
}

static BOOL WINAPI deny_writing(HANDLE process, LPVOID to, LPCVOID from, SIZE_T size, SIZE_T* done) {
  (void)process, (void)to, (void)from, (void)size, (void)done;
  SetLastError(ERROR_ACCESS_DENIED);
  return FALSE;
}

static LPVOID WINAPI deny_space(HANDLE process, LPVOID at, SIZE_T size, DWORD type, DWORD rights) {
  (void)process, (void)at, (void)size, (void)type, (void)rights;
  return NULL;
}

static LONG NTAPI deny_view(HANDLE section, HANDLE process, PVOID* at, ULONG_PTR zero_bits, SIZE_T commit,
                            LARGE_INTEGER* offset, SIZE_T* size, DWORD inherited, ULONG type, ULONG protection) {
  (void)section, (void)process, (void)at, (void)zero_bits, (void)commit, (void)offset, (void)size;
  (void)inherited, (void)type, (void)protection;
  return (LONG)0xC0000018; /* STATUS_CONFLICTING_ADDRESSES */
}

static int equal(const char* one, const char* other) {
  for (; *one != 0 && *one == *other; ++one) ++other;
  return *one == *other;
}

/* Policies, by their numbers, with the bits that keep something out. */
static const struct {
  const char* kept_out_by;
  int number;
  DWORD bits;
} policies[] = {{"code", 2, 1}, {"guarded", 7, 4}, {"signed", 8, 3}, {"remote", 10, 7}, {"stacks", 15, 0x60}};

static char obstacle[16];

static BOOL WINAPI tell_policy(HANDLE process, int which, void* flags, SIZE_T size) {
  DWORD told = 0;
  (void)process;
  if (size != sizeof told) return FALSE;
  for (unsigned at = 0; at < sizeof policies / sizeof *policies; ++at) {
    if (policies[at].number != which) continue;
    if (equal(obstacle, policies[at].kept_out_by)) told = policies[at].bits & (0 - policies[at].bits);
    if (equal(obstacle, "lenient")) told = ~policies[at].bits;
  }
  *(DWORD*)flags = told;
  return TRUE;
}

static UINT WINAPI drive_type(LPCWSTR root) {
  (void)root;
  return DRIVE_REMOTE;
}

static FARPROC WINAPI find(HMODULE module, LPCSTR name) {
  if ((ULONG_PTR)name > 0xffff && equal(name, "GetProcessMitigationPolicy")) return (FARPROC)(void*)tell_policy;
  return GetProcAddress(module, name);
}

static const struct {
  const char* obstacle;
  const char* function;
  void* replacement;
} all[] = {{"protected", "ReadProcessMemory", (void*)deny_reading},
           {"signed", "GetProcAddress", (void*)find},
           {"guarded", "GetProcAddress", (void*)find},
           {"stacks", "GetProcAddress", (void*)find},
           {"code", "GetProcAddress", (void*)find},
           {"remote", "GetProcAddress", (void*)find},
           {"remote", "GetDriveTypeW", (void*)drive_type},
           {"lenient", "GetProcAddress", (void*)find},
           {"full", "VirtualAllocEx", (void*)deny_space},
           {"full", "NtMapViewOfSection", (void*)deny_view},
           {"locked", "WriteProcessMemory", (void*)deny_writing}};

static void replace(const char* function, void* replacement) {
  char* const image = (char*)GetModuleHandleW(NULL);
  const IMAGE_NT_HEADERS* headers = (const IMAGE_NT_HEADERS*)(image + ((const IMAGE_DOS_HEADER*)image)->e_lfanew);
  const IMAGE_DATA_DIRECTORY* imports = &headers->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT];
  for (const IMAGE_IMPORT_DESCRIPTOR* library = (const IMAGE_IMPORT_DESCRIPTOR*)(image + imports->VirtualAddress);
       library->Name != 0; ++library) {
    const IMAGE_THUNK_DATA* names = (const IMAGE_THUNK_DATA*)(image + library->OriginalFirstThunk);
    IMAGE_THUNK_DATA* functions = (IMAGE_THUNK_DATA*)(image + library->FirstThunk);
    for (; names->u1.AddressOfData != 0; ++names, ++functions) {
      if (IMAGE_SNAP_BY_ORDINAL(names->u1.Ordinal)) continue;
      const IMAGE_IMPORT_BY_NAME* import = (const IMAGE_IMPORT_BY_NAME*)(image + names->u1.AddressOfData);
      if (!equal((const char*)import->Name, function)) continue;
      DWORD before;
      VirtualProtect(functions, sizeof *functions, PAGE_READWRITE, &before);
      functions->u1.Function = (ULONG_PTR)replacement;
      VirtualProtect(functions, sizeof *functions, before, &before);
    }
  }
}

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved) {
  (void)self, (void)reserved;
  if (reason != DLL_PROCESS_ATTACH || GetEnvironmentVariableA("OBSTACLE", obstacle, sizeof obstacle) == 0) return TRUE;
  for (unsigned at = 0; at < sizeof all / sizeof *all; ++at)
    if (equal(obstacle, all[at].obstacle)) replace(all[at].function, all[at].replacement);
  return TRUE;
}
