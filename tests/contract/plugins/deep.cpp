// A plugin that shares blocks with the program and the C library.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

extern "C" __attribute__((visibility("default"))) char* deep_make(const char* text) {
  free(strdup(text));
  auto* copy = static_cast<char*>(malloc(std::strlen(text) + 1));
  return std::strcpy(copy, text);
}

extern "C" __attribute__((visibility("default"))) void deep_free(char* block) { free(block); }

extern "C" __attribute__((visibility("default"))) void* deep_next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  asm volatile("" : "+r"(found));  // else the caller would be asking
  return found;
}
