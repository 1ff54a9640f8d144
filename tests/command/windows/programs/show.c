/* Tells everything a program can know of how it was started, so that two starts can be compared. Its last argument
   may ask for more:

     exit=CODE     ends with that code
     abort         ends by an exception
     write=HANDLE  writes "inherited" to a handle
     descriptor    writes "inherited" to the C runtime's descriptor 3
     let-go        the same, then closes the descriptor and waits a while
     close         closes its output, then waits a while
     headers       tells where its headers lead
     has=MODULE    ends with 1 when that module is in the process, else with 0
*/

#include <windows.h>

#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static void show_text(const char* name, const WCHAR* text, size_t length) {
  printf("%s ", name);
  for (size_t at = 0; at < length; ++at) printf("%04x", text[at]);
  puts("");
}

static void show_folder(void) {
  WCHAR folder[MAX_PATH];
  show_text("folder", folder, GetCurrentDirectoryW(MAX_PATH, folder));
}

static void show_environment(void) {
  WCHAR* const block = GetEnvironmentStringsW();
  for (const WCHAR* entry = block; *entry != 0; entry += wcslen(entry) + 1) show_text("variable", entry, wcslen(entry));
  FreeEnvironmentStringsW(block);
}

static void show_startup(void) {
  STARTUPINFOW info;
  BOOL in_job = FALSE;
  GetStartupInfoW(&info);
  /* A title that was not given is the program's own path. */
  WCHAR path[MAX_PATH];
  GetModuleFileNameW(NULL, path, MAX_PATH);
  if (_wcsicmp(info.lpTitle, path) != 0) show_text("title", info.lpTitle, wcslen(info.lpTitle));
  printf("window %lx %u\n", info.dwFlags & ~STARTF_USESTDHANDLES, info.wShowWindow);
  printf("priority %lx\n", GetPriorityClass(GetCurrentProcess()));
  IsProcessInJob(GetCurrentProcess(), NULL, &in_job);
  printf("job %d\n", in_job);
  printf("error mode %x\n", GetErrorMode());
}

static void show_streams(void) {
  static const DWORD names[] = {STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};
  for (int at = 0; at < 3; ++at) printf("stream %lx\n", GetFileType(GetStdHandle(names[at])));
  char bytes[256];
  DWORD length = 0;
  while (ReadFile(GetStdHandle(STD_INPUT_HANDLE), bytes, sizeof bytes, &length, NULL) && length > 0)
    printf("input %.*s\n", (int)length, bytes);
  fprintf(stderr, "to stderr\n");
}

static void show_headers(void) {
  const char* image = (const char*)GetModuleHandleW(NULL);
  const IMAGE_NT_HEADERS* headers = (const IMAGE_NT_HEADERS*)(image + ((const IMAGE_DOS_HEADER*)image)->e_lfanew);
  for (int at = 0; at < IMAGE_NUMBEROF_DIRECTORY_ENTRIES; ++at)
    printf("directory %lx %lx\n", headers->OptionalHeader.DataDirectory[at].VirtualAddress,
           headers->OptionalHeader.DataDirectory[at].Size);
}

static void write_to(HANDLE handle) {
  DWORD done;
  WriteFile(handle, "inherited", 9, &done, NULL);
}

static void close_and_wait(void) {
  fclose(stdout);
  CloseHandle(GetStdHandle(STD_OUTPUT_HANDLE));
  Sleep(3000);
}

static int write_to_descriptor(void) { return _write(3, "inherited", 9) == 9 ? 0 : 1; }

static int let_go_of_descriptor(void) {
  const int failed = write_to_descriptor();
  _close(3);
  Sleep(3000);
  return failed;
}

static int obey(const char* word) {
  if (strncmp(word, "exit=", 5) == 0) return (int)strtoul(word + 5, NULL, 0);
  if (strcmp(word, "abort") == 0) RaiseException(0xC0000005, 0, 0, NULL);
  if (strncmp(word, "write=", 6) == 0) write_to((HANDLE)(size_t)strtoull(word + 6, NULL, 0));
  if (strcmp(word, "descriptor") == 0) return write_to_descriptor();
  if (strcmp(word, "let-go") == 0) return let_go_of_descriptor();
  if (strcmp(word, "close") == 0) close_and_wait();
  if (strncmp(word, "has=", 4) == 0) return GetModuleHandleA(word + 4) != NULL;
  return 0;
}

int main(int count, char** words) {
  const char* const last = words[count - 1];
  const WCHAR* const line = GetCommandLineW();
  _setmode(_fileno(stdout), _O_BINARY);
  setvbuf(stdout, NULL, _IOFBF, 1 << 16);
  show_text("line", line, wcslen(line));
  for (int at = 1; at < count; ++at) printf("word %s\n", words[at]);
  show_folder();
  show_environment();
  show_startup();
  show_streams();
  if (strcmp(last, "headers") == 0) show_headers();
  fflush(stdout);
  return obey(last);
}
