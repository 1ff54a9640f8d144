// The calling thread's signals, without the C library, which may know nothing of the thread.
#pragma once

#include <signal.h>

#include <cstdint>

#include "platform/linux/syscall.h"

namespace rh::platform {

// The kernel's signal set: 64 bits on every architecture here.
struct SignalMask {
  uint64_t bits;
};

constexpr uint64_t signal_bit(int number) { return uint64_t{1} << (number - 1); }

inline void set_signal_mask(const SignalMask& mask, SignalMask* old) {
  system_call(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&mask), reinterpret_cast<long>(old),
              sizeof(mask.bits));
}

// A write for which nobody is there to read, or that makes a file longer than the process may, is told of by a signal
// too: it would end the program for what the library has to say. The kernel sends both to the thread that writes. One
// that the program holds back itself may be waiting already, and is left to it. A sandbox meets no call here that the
// end of a process does not make, unless a write fails.
class QuietWrites {
 public:
  QuietWrites() {
    system_call(SYS_rt_sigprocmask, SIG_BLOCK, pointer(&told_), pointer(&old_), sizeof(told_.bits));
    told_.bits &= ~old_.bits;
  }
  ~QuietWrites() { set_signal_mask(old_, nullptr); }
  QuietWrites(const QuietWrites&) = delete;
  QuietWrites& operator=(const QuietWrites&) = delete;

  // After a write that failed.
  void forget_signal() const {
    const long at_once[2] = {};
    system_call(SYS_rt_sigtimedwait, pointer(&told_), 0, pointer(at_once), sizeof(told_.bits));
  }

 private:
  static long pointer(const void* address) { return reinterpret_cast<long>(address); }

  SignalMask old_ = {}, told_ = {signal_bit(SIGPIPE) | signal_bit(SIGXFSZ)};
};

}  // namespace rh::platform
