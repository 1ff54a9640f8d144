// full REHEAP-DLL: takes all that its limit lets it have, then starts threads and loads a library, which go on or are
// refused; but nothing is left waiting.
#include <windows.h>

enum { kThreads = 10, kPatience = 10000 };

static DWORD WINAPI run(void* nothing) {
  (void)nothing;
  return 1;
}

static void fill(HANDLE heap) {
  for (SIZE_T size = 1 << 20; size != 0; size /= 4)
    while (HeapAlloc(heap, 0, size) != NULL) {}
}

int main(int count, char** arguments) {
  if (count != 2 || LoadLibraryA(arguments[1]) == NULL) return 2;
  fill(GetProcessHeap());
  for (int i = 0; i < kThreads; ++i) {
    HANDLE thread = CreateThread(NULL, 0, run, NULL, 0, NULL);
    if (thread == NULL) continue;
    // What waits for the loader's lock would keep ExitProcess too.
    if (WaitForSingleObject(thread, kPatience) != WAIT_OBJECT_0) TerminateProcess(GetCurrentProcess(), 3);
    CloseHandle(thread);
  }
  LoadLibraryA("version.dll");
  return 0;
}
