// The DLLs of this process: those there are, and those that come and go.
#pragma once

#include "redirect.h"

namespace rh::redirect {

struct ModuleEvents {
  // Mapped, and nobody has called it through an import of its own yet.
  void (*came)(const Module& module);
  void (*went)(const void* base);
};

// Calls `came` for every DLL there is. Under the loader's lock.
void for_each_module(void (*came)(const Module& module));

// Reports from now on, under the loader's lock. False where Windows (before Vista) does not tell.
bool watch_modules(const ModuleEvents& events);
void stop_watching();

}  // namespace rh::redirect
