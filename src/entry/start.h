// What happens once: options are read before the first memory is taken, whoever asks for it; the rest when the
// library's constructor runs.
#pragma once

#include <atomic>

#include "base/compiler.h"

namespace rh {

RH_HIDDEN extern constinit std::atomic<bool> g_started;
RH_COLD void start_now();

inline void start() {
  if (RH_UNLIKELY(!g_started.load(std::memory_order_relaxed))) start_now();
}

// To be called once when the library is loaded and everything it replaces is in place, and when the process ends: what
// was asked for by the options is said here. The second end() says nothing. Called by the system's lifetime.cpp, or
// reheap.dll's DllMain.
void begin();
void end();

}  // namespace rh
