#pragma once

#include <windows.h>

// The function that a module exports by this name, or NULL.
template <typename F> bool find(HMODULE module, const char* name, F*& function) {
  function = reinterpret_cast<F*>(reinterpret_cast<void*>(GetProcAddress(module, name)));
  return function != nullptr;
}
