/* Runs one Windows program and writes what it cost as one line of JSON.
 *
 *   measure --out FILE -- PROGRAM ARGUMENTS...
 *
 * Times, page faults and the peak commit are those of the program and of what it started, by a job object; the peak
 * working set is the program's own. "modules" are the C runtimes and allocators it had loaded. A figure that cannot be
 * had is left out: Wine counts none but the time that passed, and says 0 for the others.
 *
 * Exit status: 0 when the program was started and waited for (its own is in the JSON), 2 otherwise. */
#define WIN32_LEAN_AND_MEAN
#define PSAPI_VERSION 2
#include <windows.h>

#include <psapi.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

enum { LOOK_MS = 20, MORE_LOOKS = 4, MOST_LOOKS = 50, MOST_MODULES = 256 };

/* Those whose presence tells who served memory. */
static const wchar_t* const told[] = {L"ucrtbase.dll", L"msvcrt.dll",        L"reheap.dll",
                                      L"mimalloc.dll", L"peer_mimalloc.dll", L"peer_rpmalloc.dll"};
enum { TOLD = sizeof told / sizeof told[0] };

typedef struct {
  wchar_t path[MAX_PATH];
  int is_wines;
} Module;

static Module found[TOLD];

static int fail(const char* what) {
  fprintf(stderr, "measure: %s (error %lu)\n", what, GetLastError());
  return 2;
}

static int under_wine(void) {
  return GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version") != NULL;
}

static long long now_ns(void) {
  LARGE_INTEGER count, frequency;
  QueryPerformanceCounter(&count);
  QueryPerformanceFrequency(&frequency);
  return (long long)((double)count.QuadPart * 1e9 / (double)frequency.QuadPart);
}

static const wchar_t* file_name(const wchar_t* path) {
  const wchar_t* last = wcsrchr(path, L'\\');
  return last ? last + 1 : path;
}

/* Wine's own DLLs say so where others say that they do not run in DOS mode. */
static int is_wines(HANDLE process, HMODULE module) {
  static const char mark[] = "Wine builtin DLL";
  char mark_there[sizeof mark - 1] = {0};
  return ReadProcessMemory(process, (char*)module + sizeof(IMAGE_DOS_HEADER), mark_there,
                           sizeof mark_there, NULL) &&
         memcmp(mark_there, mark, sizeof mark_there) == 0;
}

static void note(HANDLE process, HMODULE module) {
  wchar_t path[MAX_PATH];
  if (!GetModuleFileNameExW(process, module, path, MAX_PATH)) return;
  for (int i = 0; i < TOLD; i++) {
    if (_wcsicmp(file_name(path), told[i]) != 0) continue;
    wcscpy(found[i].path, path);
    found[i].is_wines = is_wines(process, module);
  }
}

/* While it runs: the loader's list is gone with it, and at first not there. */
static int note_modules(HANDLE process) {
  HMODULE modules[MOST_MODULES];
  DWORD bytes = 0;
  if (!EnumProcessModules(process, modules, sizeof modules, &bytes)) return 0;
  DWORD count = bytes / sizeof modules[0];
  for (DWORD i = 0; i < count && i < MOST_MODULES; i++) note(process, modules[i]);
  return 1;
}

static void write_path(FILE* out, const wchar_t* path) {
  for (; *path; path++) {
    if (*path == L'\\' || *path == L'"') fputc('\\', out);
    if (*path < 0x80)
      fputc((int)*path, out);
    else
      fprintf(out, "\\u%04x", (unsigned)*path);
  }
}

static void write_modules(FILE* out) {
  const char* separator = "";
  fprintf(out, ",\"modules\":[");
  for (int i = 0; i < TOLD; i++) {
    if (!found[i].path[0]) continue;
    fprintf(out, "%s{\"name\":\"%ls\",\"wines\":%s,\"path\":\"", separator, told[i],
            found[i].is_wines ? "true" : "false");
    write_path(out, found[i].path);
    fprintf(out, "\"}");
    separator = ",";
  }
  fprintf(out, "]");
}

static void write_costs(FILE* out, HANDLE process, HANDLE job) {
  JOBOBJECT_BASIC_ACCOUNTING_INFORMATION used;
  if (QueryInformationJobObject(job, JobObjectBasicAccountingInformation, &used, sizeof used, NULL))
    fprintf(out, ",\"processes\":%lu,\"user_us\":%lld,\"kernel_us\":%lld,\"page_faults\":%lu",
            used.TotalProcesses, used.TotalUserTime.QuadPart / 10,
            used.TotalKernelTime.QuadPart / 10, used.TotalPageFaultCount);
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits;
  if (QueryInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits,
                                NULL))
    fprintf(out, ",\"peak_commit_kib\":%llu", (unsigned long long)limits.PeakJobMemoryUsed / 1024);
  PROCESS_MEMORY_COUNTERS memory;
  if (GetProcessMemoryInfo(process, &memory, sizeof memory))
    fprintf(out, ",\"peak_working_set_kib\":%llu,\"peak_process_commit_kib\":%llu",
            (unsigned long long)memory.PeakWorkingSetSize / 1024,
            (unsigned long long)memory.PeakPagefileUsage / 1024);
}

/* Until there is a C runtime, and a little longer: other DLLs may be loaded after it. Some programs have none. */
static void wait_for_end(HANDLE process) {
  int looks = MOST_LOOKS, more = MORE_LOOKS;
  while (looks > 0 && more > 0 && WaitForSingleObject(process, LOOK_MS) == WAIT_TIMEOUT) {
    if (note_modules(process)) looks--;
    if (found[0].path[0]) more--;
  }
  WaitForSingleObject(process, INFINITE);
}

static int run(wchar_t* line, FILE* out) {
  STARTUPINFOW start = {.cb = sizeof start};
  PROCESS_INFORMATION started;
  HANDLE job = CreateJobObjectW(NULL, NULL);
  long long began = now_ns();
  if (!CreateProcessW(NULL, line, NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL, &start, &started))
    return fail("cannot start the program");
  if (!AssignProcessToJobObject(job, started.hProcess)) return fail("no job takes the program");
  ResumeThread(started.hThread);
  wait_for_end(started.hProcess);
  long long took = now_ns() - began;
  DWORD status = 0;
  GetExitCodeProcess(started.hProcess, &status);
  fprintf(out, "{\"pid\":%lu,\"exit\":%lu,\"wall_ns\":%lld", started.dwProcessId, status, took);
  if (!under_wine()) write_costs(out, started.hProcess, job);
  write_modules(out);
  fprintf(out, "}\n");
  return fclose(out) == 0 ? 0 : fail("cannot write");
}

/* The rest of our own command line, as it stands: so no word has to be quoted again. */
static wchar_t* line_after_dashes(void) {
  wchar_t* dashes = wcsstr(GetCommandLineW(), L" -- ");
  return dashes ? dashes + wcslen(L" -- ") : NULL;
}

int wmain(int argc, wchar_t** argv) {
  wchar_t* line = line_after_dashes();
  if (argc < 5 || wcscmp(argv[1], L"--out") != 0 || !line) {
    fprintf(stderr, "usage: measure --out FILE -- PROGRAM ARGUMENTS...\n");
    return 2;
  }
  FILE* out = _wfopen(argv[2], L"w");
  return out ? run(line, out) : fail("cannot write the file");
}
