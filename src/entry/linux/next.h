// A function of the C library's that this library stands before, as the program would reach it if this were not there.
#pragma once

#include <dlfcn.h>

#include <atomic>

#include "platform/linux/libc.h"

// Weak: absent from statically linked programs.
extern "C" [[gnu::weak]] void* dlsym(void* handle, const char* name) RH_C_NOEXCEPT;

namespace rh {

template <typename Function> class NextFunction {
 public:
  explicit constexpr NextFunction(const char* name) : name_(name) {}

  // Null where the loader cannot tell. Takes its locks.
  Function* look_up() {
    if (dlsym == nullptr) return nullptr;
    auto* function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
    function_.store(function, std::memory_order_relaxed);
    return function;
  }

  // What was found; for functions that are called where nobody may wait for the loader.
  Function* known() const { return function_.load(std::memory_order_relaxed); }

  // For those that may be called before the constructors of this library have run.
  Function* get() {
    Function* function = known();
    return function != nullptr ? function : look_up();
  }

 private:
  const char* name_;
  std::atomic<Function*> function_{nullptr};
};

}  // namespace rh
