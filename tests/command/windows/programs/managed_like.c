/* Has the header of a .NET program with nothing but .NET code in a section of its own; the test puts that into the
   list of directories. Ends with 42. */

#include <windows.h>

__attribute__((section(".clr"), used)) IMAGE_COR20_HEADER header = {.cb = sizeof(IMAGE_COR20_HEADER),
                                                                    .Flags = COMIMAGE_FLAGS_ILONLY};

DWORD start(void) { return 42; }
