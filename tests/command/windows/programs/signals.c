/* Waits in a console for Ctrl-C, and ends with 77 when it comes, with 78 for another signal, with 79 when none comes.
   */

#include <windows.h>

#include <stdio.h>

/* Not at once: a starter that does not outlive the signal ends first. */
static BOOL WINAPI end(DWORD signal) {
  Sleep(1000);
  ExitProcess(signal == CTRL_C_EVENT ? 77 : 78);
}

int main(void) {
  const DWORD shared = FILE_SHARE_READ | FILE_SHARE_WRITE;
  HANDLE keys = CreateFileW(L"CONIN$", GENERIC_READ | GENERIC_WRITE, shared, NULL, OPEN_EXISTING, 0, NULL);
  const ULONGLONG start = GetTickCount64();
  DWORD mode = 0;
  GetConsoleMode(keys, &mode);
  SetConsoleMode(keys, mode | ENABLE_PROCESSED_INPUT);
  SetConsoleCtrlHandler(end, TRUE);
  printf("ready\n");
  fflush(stdout);
  /* The console looks at keys for those who read them. */
  while (GetTickCount64() - start < 10000) {
    char key;
    DWORD length;
    if (WaitForSingleObject(keys, 50) == WAIT_OBJECT_0) ReadFile(keys, &key, 1, &length, NULL);
  }
  return 79;
}
