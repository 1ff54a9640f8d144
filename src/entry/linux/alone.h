// For the C library's functions that change what a process may do, or ask for a process of one thread. The helper thread
// is none of the C library's: what it tells its threads, the helper would not hear. So it is ended before each, and
// nobody makes one meanwhile (heap/idle.h).
#pragma once

#include <dlfcn.h>

#include <atomic>

#include "heap/idle.h"

// Weak: absent from statically linked programs.
extern "C" [[gnu::weak]] void* dlsym(void* handle, const char* name) noexcept;

namespace rh {

// The function that the program would reach if this library were not there; null where the loader cannot tell.
template <typename Function>
class NextFunction {
 public:
  explicit constexpr NextFunction(const char* name) : name_(name) {}

  // Before the constructors of this library have run, others' may call.
  Function* get() {
    Function* function = function_.load(std::memory_order_relaxed);
    if (function != nullptr || dlsym == nullptr) return function;
    function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
    function_.store(function, std::memory_order_relaxed);
    return function;
  }

 private:
  const char* name_;
  std::atomic<Function*> function_{nullptr};
};

}  // namespace rh

// Defines `result name parameters`, of the C library's by that name, as `call` with the helper out of the way. The
// program's own declarations are the C library's; here only the shape counts.
#define RH_ALONE(result, name, parameters, call)                              \
  static constinit rh::NextFunction<result parameters> g_##name{#name};       \
  extern "C" [[gnu::visibility("default")]] result name parameters noexcept;  \
  extern "C" [[gnu::visibility("default")]] result name parameters noexcept { \
    rh::idle::WithoutHelper alone;                                            \
    return call;                                                              \
  }
