/* A DLL with a reheap of its own, without C++'s library. */
#include <stdlib.h>
#include <windows.h>

static void* kept = NULL;

__declspec(dllexport) void* plain_make(size_t size) { return malloc(size); }
__declspec(dllexport) void plain_drop(void* block) { free(block); }

BOOL WINAPI DllMain(HINSTANCE module, DWORD reason, void* process_ends) {
  (void)module, (void)process_ends;
  if (reason == DLL_PROCESS_ATTACH) kept = malloc(5000);
  if (reason == DLL_PROCESS_DETACH) {
    free(kept);
    free(malloc(70000));
  }
  return TRUE;
}
