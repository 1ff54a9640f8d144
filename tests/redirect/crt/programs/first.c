/* reheap.dll stands first in the import table: it is attached before the C runtime is initialised, which gets its
   memory
 * from reheap from then on. */
#include <windows.h>

#include <reheap/reheap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <winternl.h>

PEB* NTAPI RtlGetCurrentPeb(void);

/* The loader's record of a DLL, from the links in the order of initialisation on. */
typedef struct {
  LIST_ENTRY initialization_order;
  void* base;
} Record;

static int is_attached_before(const void* first, const void* second) {
  /* winternl.h leaves the third list out; it follows the second. */
  LIST_ENTRY* head = &RtlGetCurrentPeb()->Ldr->InMemoryOrderModuleList + 1;
  for (LIST_ENTRY* link = head->Flink; link != head; link = link->Flink) {
    const void* base = CONTAINING_RECORD(link, Record, initialization_order)->base;
    if (base == first) return 1;
    if (base == second) return 0;
  }
  return 0;
}

int main(void) {
#ifdef _UCRT
  HMODULE runtime = GetModuleHandleA("ucrtbase.dll");
#else
  HMODULE runtime = GetModuleHandleA("msvcrt.dll");
#endif
  if (!is_attached_before(GetModuleHandleA("reheap.dll"), runtime)) return 1;
  char* text = strdup("some text");
  void* block = realloc(malloc(100), 1000);
  if (!rh_owns(text) || !rh_owns(block)) return 2;
  free(text);
  free(block);
  puts("output through the runtime's own buffers");
  return 0;
}
