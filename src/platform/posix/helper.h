// What starting and ending the helper thread has in common wherever there are POSIX threads.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "base/compiler.h"

namespace rh::platform {

// One helper at a time. Not zero from before it is launched until its stack is free for the next one, and its waiters
// can be told.
RH_HIDDEN extern constinit std::atomic<uint32_t> g_helper_alive;

// By `launch`, which is the system's and may fail, in a thread that takes no signal at the moment. Returns what
// start_helper does.
bool start_helper_unheard(bool (*launch)(void (*main)()), void (*main)(), bool (*is_wanted)());

inline void* run_as_pthread(void* main) {
  reinterpret_cast<void (*)()>(main)();
  g_helper_alive.store(0, std::memory_order_release);
  return nullptr;
}

// Inline, for what is launched otherwise is linked without pthread_create.
inline bool launch_pthread(void (*main)()) {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, run_as_pthread, reinterpret_cast<void*>(main)) != 0) return false;
  pthread_detach(thread);
  return true;
}

}  // namespace rh::platform
