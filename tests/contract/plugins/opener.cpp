// Opens a library that lies where only this one's DT_RUNPATH leads.
#include <dlfcn.h>

extern "C" __attribute__((visibility("default"))) void* open_beside(const char* name, int flags) {
  void* library = dlopen(name, flags);
  return library;  // not a jump: the caller is this library
}

extern "C" __attribute__((visibility("default"))) void* open_beside_in_base(const char* name,
                                                                            int flags) {
  void* library = dlmopen(LM_ID_BASE, name, flags);
  return library;
}
