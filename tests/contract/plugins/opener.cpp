// Opens a library that only this one's DT_RUNPATH leads to, and asks what comes behind itself.
#include <dlfcn.h>

// Work after the call: with a tail call, the caller's caller would be asking.
static void* called_from_here(void* result) {
  asm volatile("" : "+r"(result));
  return result;
}

extern "C" __attribute__((visibility("default"))) void* open_beside(const char* name, int flags) {
  void* library = dlopen(name, flags);
  return called_from_here(library);
}

extern "C" __attribute__((visibility("default"))) void* open_beside_in_base(const char* name, int flags) {
  void* library = dlmopen(LM_ID_BASE, name, flags);
  return called_from_here(library);
}

extern "C" __attribute__((visibility("default"))) void* next_to_opener(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  return called_from_here(found);
}
