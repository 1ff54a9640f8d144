// What the kernel has processes do for themselves: functions of the vDSO, an image mapped into each process.
#pragma once

#include <atomic>
#include <cstdint>

namespace rh::platform {

// The address of a function there; 0 when this kernel has none of that name.
uintptr_t find_kernel_function(const char* name);
// The same of another image whose loader left its tables as they are in the file; `image` is where its header lies.
uintptr_t find_function(uintptr_t image, const char* name);

// One of them, looked for at its first use; `instead` where there is none.
template <typename Function> class KernelFunction {
 public:
  constexpr KernelFunction(const char* name, Function* instead) : name_(name), instead_(instead) {}

  Function* get() {
    Function* function = found_.load(std::memory_order_relaxed);
    if (function != nullptr) return function;
    uintptr_t address = find_kernel_function(name_);
    function = address == 0 ? instead_ : reinterpret_cast<Function*>(address);
    found_.store(function, std::memory_order_relaxed);
    return function;
  }

 private:
  const char* name_;
  Function* instead_;
  std::atomic<Function*> found_{nullptr};
};

}  // namespace rh::platform
