// locked REHEAP-DLL: of one thread, it locks the process heap for good, frees so much that memory goes back, loads a
// library and ends. What waited for that lock meanwhile would hold the loader's.
#include <windows.h>

enum { kBlocks = 4000, kSize = 20000, kRounds = 3 };

static void* blocks[kBlocks];

int main(int count, char** arguments) {
  if (count != 2 || LoadLibraryA(arguments[1]) == NULL) return 2;
  HANDLE heap = GetProcessHeap();
  if (!HeapLock(heap)) return 3;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kBlocks; ++i) blocks[i] = HeapAlloc(heap, 0, kSize);
    for (int i = 0; i < kBlocks; ++i)
      if (!HeapFree(heap, 0, blocks[i])) return 4;
  }
  return LoadLibraryA("version.dll") == NULL ? 5 : 0;
}
