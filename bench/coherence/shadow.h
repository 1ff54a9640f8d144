// One value for each line or page of the whole address space, in memory that the system provides as it is used.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "system_call.h"

namespace coherence {

template <typename T, unsigned kUnitBits> class Shadow {
 public:
  // Of an address >> kUnitBits. First asked for while the program is being loaded, when there is one thread, and before
  // any constructor has run.
  T& at(uintptr_t unit) {
    if (values_ == nullptr) [[unlikely]]
      values_ = map();
    return values_[unit & (kUnits - 1)];
  }

 private:
  static constexpr unsigned kAddressBits = 47;  // of a program on x86-64 Linux
  static constexpr size_t kUnits = size_t{1} << (kAddressBits - kUnitBits);

  static T* map() {
    constexpr size_t kBytes = kUnits * sizeof(T);
    long at = system_call(SYS_mmap, 0, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (at < 0) {
      constexpr char kMessage[] = "coherence: no address space for the states of all lines\n";
      system_call(SYS_write, 2, reinterpret_cast<long>(kMessage), sizeof(kMessage) - 1);
      system_call(SYS_exit_group, 1);
    }
    system_call(SYS_madvise, at, kBytes, MADV_NOHUGEPAGE);  // else a few lines would take megabytes
    return reinterpret_cast<T*>(at);
  }

  T* values_ = nullptr;
};

}  // namespace coherence
