/* starter FORM LINE: starts LINE in one of the forms there are, and ends with its exit code. */

#include <windows.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static int wait_for(const PROCESS_INFORMATION* made) {
  DWORD code = 250;
  WaitForSingleObject(made->hProcess, 60000);
  GetExitCodeProcess(made->hProcess, &code);
  return (int)code;
}

/* Suspended at the caller's wish: it must not have run when CreateProcess returns. */
static int resume(const PROCESS_INFORMATION* made) {
  if (WaitForSingleObject(made->hProcess, 500) != WAIT_TIMEOUT) return 251;
  return ResumeThread(made->hThread) == 1 ? wait_for(made) : 252;
}

static int start_wide(const WCHAR* form, WCHAR* line) {
  STARTUPINFOW info = {.cb = sizeof info};
  PROCESS_INFORMATION made;
  const DWORD flags = wcscmp(form, L"suspended") == 0 ? CREATE_SUSPENDED : 0;
  HANDLE token = NULL;
  BOOL done;
  if (wcscmp(form, L"as_user") == 0) {
    OpenProcessToken(GetCurrentProcess(), TOKEN_ALL_ACCESS, &token);
    done = CreateProcessAsUserW(token, NULL, line, NULL, NULL, FALSE, 0, NULL, NULL, &info, &made);
  } else {
    done = CreateProcessW(NULL, line, NULL, NULL, FALSE, flags, NULL, NULL, &info, &made);
  }
  if (!done) return 253;
  return flags != 0 ? resume(&made) : wait_for(&made);
}

static int start_narrow(const WCHAR* line) {
  char text[4096];
  STARTUPINFOA info = {.cb = sizeof info};
  PROCESS_INFORMATION made;
  WideCharToMultiByte(CP_ACP, 0, line, -1, text, sizeof text, NULL, NULL);
  if (!CreateProcessA(NULL, text, NULL, NULL, FALSE, 0, NULL, NULL, &info, &made)) return 253;
  return wait_for(&made);
}

/* The line that follows FORM. */
static WCHAR* line_behind(const WCHAR* form) {
  WCHAR* at = wcsstr(GetCommandLineW(), form) + wcslen(form);
  while (*at == L' ') ++at;
  return at;
}

int main(int count, char** words) {
  static const WCHAR* const forms[] = {L"wide", L"suspended", L"as_user", L"narrow", L"system"};
  for (int at = 0; at < 5; ++at) {
    char name[16];
    snprintf(name, sizeof name, "%ls", forms[at]);
    if (count < 3 || strcmp(words[1], name) != 0) continue;
    WCHAR* const line = line_behind(forms[at]);
    if (at == 3) return start_narrow(line);
    return at == 4 ? _wsystem(line) : start_wide(forms[at], line);
  }
  return 254;
}
