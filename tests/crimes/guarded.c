#include "guarded.h"

#ifdef _WIN32
#include <windows.h>

/* No window, and no debugger. */
static LONG WINAPI end_quietly(EXCEPTION_POINTERS* exception) {
  (void)exception;
  return EXCEPTION_EXECUTE_HANDLER;
}
#endif

char* guarded_block(int at_end) {
  char* block = NULL;
#ifdef _WIN32
  SetUnhandledExceptionFilter(end_quietly);
#endif
  if (!rh_option_set("sample_guard", "1")) abort();
  for (int attempt = 0; attempt < 200; ++attempt) {
    block = malloc(LENGTH);
    if ((uintptr_t)block % (16 * 1024) == (at_end ? LATEST_START : 0)) return block;
    free(block);
  }
  abort();
}
