// A DLL that uses heaps when the process ends and all other threads are gone, wherever they were.
#include <windows.h>

enum { BLOCKS = 300 };
static HANDLE heap;
static void* kept[2 * BLOCKS];

static void make_all(void) {
  for (int i = 0; i < BLOCKS; ++i) {
    kept[2 * i] = HeapAlloc(GetProcessHeap(), 0, (SIZE_T)i * 200);
    kept[2 * i + 1] = HeapAlloc(heap, 0, (SIZE_T)i * 200);
  }
}

static void free_all(void) {
  for (int i = 0; i < BLOCKS; ++i)
    if (!HeapFree(GetProcessHeap(), 0, kept[2 * i]) || !HeapFree(heap, 0, kept[2 * i + 1]))
      TerminateProcess(GetCurrentProcess(), 4);
}

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, void* process_ends) {
  (void)self;
  if (reason == DLL_PROCESS_ATTACH) {
    heap = HeapCreate(0, 0, 0);
    make_all();
  }
  if (reason == DLL_PROCESS_DETACH && process_ends != NULL) {
    free_all();
    make_all();
    free_all();
    HeapDestroy(heap);
  }
  return TRUE;
}
