// For the shared library, which runs on C libraries other than the one it was linked for too. Of glibc's pthread_atfork
// each library has a copy, which calls what musl has not; that one's is to be found at run time.
#include <errno.h>

#include "entry/linux/next.h"
#include "platform/linux/libc.h"

using Handler = void (*)();

extern "C" {
extern void* __dso_handle;
// By this name here; a header's declaration would show it to others.
[[gnu::visibility("hidden")]] int own_atfork(Handler before, Handler in_parent,
                                             Handler in_child) __asm__("pthread_atfork");
}

int own_atfork(Handler before, Handler in_parent, Handler in_child) {
  if (__register_atfork != nullptr) return __register_atfork(before, in_parent, in_child, &__dso_handle);
  rh::NextFunction<int(Handler, Handler, Handler)> next("pthread_atfork");
  auto* function = next.look_up();
  return function != nullptr ? function(before, in_parent, in_child) : ENOSYS;
}
