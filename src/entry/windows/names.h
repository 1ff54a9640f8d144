// How the C runtime's names are defined. Where code was compiled to reach them in a DLL it goes through a pointer
// called __imp_…: GCC's import libraries have both in one object, so both must be here or neither.
#pragma once

#include <cstddef>

#include "entry/windows/host.h"

#if defined(__MINGW32__)
#define RH_TEXT_OF_(name) #name
#define RH_TEXT_OF(name) RH_TEXT_OF_(name)
#define RH_ALSO_IMPORTED(name)                                                                     \
  extern "C" void* const rh_imported_##name asm("__imp_" RH_TEXT_OF(__USER_LABEL_PREFIX__) #name); \
  void* const rh_imported_##name = reinterpret_cast<void*>(&name);
#else
#define RH_ALSO_IMPORTED(name)
#endif

// RH_CRT(return type, name, (parameters), expression)
#define RH_CRT(type, name, parameters, expression)       \
  extern "C" __attribute__((used)) type name parameters; \
  extern "C" type name parameters { return expression; } \
  RH_ALSO_IMPORTED(name)
