// What the two libraries have in common that pass everything on but for one thing. A word that neither knows breaks
// nothing, and the test that has to notice it passes, which control.py reports.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

// Whether CONTRACT_BREAK names this. Looked up at the first call: a test may run before any constructor of ours.
inline bool broken(const char* rule) {
  static constinit const char* chosen = nullptr;
  if (!chosen) chosen = std::getenv("CONTRACT_BREAK");
  return chosen && std::strcmp(chosen, rule) == 0;
}

template <class Function> Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
