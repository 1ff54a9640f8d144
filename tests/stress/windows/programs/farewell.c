#include "farewell.h"

#include <windows.h>

#include <stdlib.h>
#include <string.h>

enum { count = 50, size = 777 };

static enum Farewell last;
static HANDLE heap;
static char* of_process[count];
static char* of_heap[count];
static char* of_runtime[count];

__declspec(dllexport) void set_farewell(enum Farewell farewell) { last = farewell; }

static void say(const char* text) {
  DWORD done;
  WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), text, (DWORD)strlen(text), &done, NULL);
}

static void need(int holds, const char* what) {
  if (holds) return;
  say(what);
  TerminateProcess(GetCurrentProcess(), 1);
}

static int is_whole(const char* block, char with) {
  for (int at = 0; at < size; ++at)
    if (block[at] != with) return 0;
  return 1;
}

static void attach(void) {
  heap = HeapCreate(0, 0, 0);
  for (int at = 0; at < count; ++at) {
    memset(of_process[at] = HeapAlloc(GetProcessHeap(), 0, size), 'p', size);
    memset(of_heap[at] = HeapAlloc(heap, 0, size), 'h', size);
    memset(of_runtime[at] = malloc(size), 'r', size);
  }
}

/* As the destructors of a program's objects do. */
static void detach(void) {
  for (int at = 0; at < count; ++at) {
    need(is_whole(of_process[at], 'p') && is_whole(of_heap[at], 'h') && is_whole(of_runtime[at], 'r'), "changed\n");
    need(HeapSize(GetProcessHeap(), 0, of_process[at]) == size, "another size\n");
    need(HeapFree(GetProcessHeap(), 0, of_process[at]), "not freed\n");
    if (at % 2 == 0) need(HeapFree(heap, 0, of_heap[at]), "not freed in the private heap\n");
    free(of_runtime[at]);
    char* block = HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, 100 + at * 1000);
    need(block != NULL && block[0] == 0, "not served\n");
    block = HeapReAlloc(GetProcessHeap(), 0, block, 10);
    need(HeapFree(GetProcessHeap(), 0, block), "a new one is not freed\n");
    need(HeapAlloc(heap, 0, 3000) != NULL, "not served in the private heap\n");
  }
  need(HeapLock(heap) && HeapLock(GetProcessHeap()), "not locked\n");
  need(HeapUnlock(GetProcessHeap()) && HeapUnlock(heap), "not unlocked\n");
  need(HeapDestroy(heap), "not destroyed\n");
  say("detached\n");
}

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved) {
  (void)self;
  (void)reserved;
  if (reason == DLL_PROCESS_ATTACH) attach();
  if (reason != DLL_PROCESS_DETACH) return TRUE;
  detach();
  if (last == farewell_exit) ExitProcess(FAREWELL_CODE);
  if (last == farewell_terminate) TerminateProcess(GetCurrentProcess(), FAREWELL_CODE);
  return TRUE;
}
