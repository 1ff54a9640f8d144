// ends REHEAP-DLL LATE-DLL: ends while threads allocate, free, and make and destroy heaps; what runs after main goes on
// using them.
#include <windows.h>

#include <stdlib.h>

static HANDLE shared_heap;
static void* kept[100];

static DWORD WINAPI churn(void* nothing) {
  (void)nothing;
  for (;;) {
    HANDLE heap = HeapCreate(0, 0, 0);
    for (int i = 0; i < 200; ++i) {
      HANDLE of[] = {heap, shared_heap, GetProcessHeap()};
      for (int which = 0; which < 3; ++which) {
        void* block = HeapAlloc(of[which], 0, (SIZE_T)i * 20);
        block = HeapReAlloc(of[which], 0, block, (SIZE_T)i * 300);
        HeapFree(of[which], 0, block);
      }
    }
    HeapDestroy(heap);
  }
  return 0;
}

static void after_main(void) {
  for (int i = 0; i < 100; ++i) {
    if (!HeapFree(shared_heap, 0, kept[i])) ExitProcess(3);
    HeapFree(GetProcessHeap(), 0, HeapAlloc(GetProcessHeap(), 0, (SIZE_T)i * 1000));
    HeapFree(shared_heap, 0, HeapAlloc(shared_heap, 0, (SIZE_T)i * 1000));
  }
}

int main(int count, char** arguments) {
  if (count != 3 || LoadLibraryA(arguments[1]) == NULL || LoadLibraryA(arguments[2]) == NULL) return 2;
  shared_heap = HeapCreate(0, 0, 0);
  for (int i = 0; i < 100; ++i) kept[i] = HeapAlloc(shared_heap, 0, 1000);
  atexit(after_main);
  for (int i = 0; i < 4; ++i) CloseHandle(CreateThread(NULL, 0, churn, NULL, 0, NULL));
  Sleep(20);
  return 0;
}
