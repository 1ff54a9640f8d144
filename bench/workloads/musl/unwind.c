/* Stands in for libgcc_s.so.1, which Rust's libraries for musl name and Debian has not: the walk that a panic begins.
 * Here nothing panics; __register_frame is told of code that was compiled as the program ran. */
#include <stdlib.h>

#define ENDS(name) \
  void name(void); \
  void name(void) { abort(); }
#define DOES_NOTHING(name) \
  void name(void);         \
  void name(void) {}

ENDS(_Unwind_Backtrace)
ENDS(_Unwind_FindEnclosingFunction)
ENDS(_Unwind_GetCFA)
ENDS(_Unwind_GetDataRelBase)
ENDS(_Unwind_GetIP)
ENDS(_Unwind_GetIPInfo)
ENDS(_Unwind_GetLanguageSpecificData)
ENDS(_Unwind_GetRegionStart)
ENDS(_Unwind_GetTextRelBase)
ENDS(_Unwind_Resume)
ENDS(_Unwind_SetGR)
ENDS(_Unwind_SetIP)
DOES_NOTHING(__deregister_frame)
DOES_NOTHING(__register_frame)
