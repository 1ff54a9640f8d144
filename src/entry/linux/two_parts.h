// What the stand-ins for the C library's waits share (waits.cpp, endless_waits.cpp).
//
// Where much is free a wait has two parts: for as long as memory is to stay warm, then, memory returned, for the rest.
#pragma once

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

#include <limits>

#include "entry/linux/next.h"
#include "entry/linux/sandbox.h"
#include "heap/idle.h"
#include "platform/linux/syscall.h"
#include "platform/platform.h"

// Weak, for programs that are linked with the archive and have a function of that name themselves.
#define RH_WAIT extern "C" [[gnu::weak, gnu::visibility("default")]]

// A system call of ours has five arguments at most elsewhere (platform/linux/syscall.h).
#if !defined(__i386__)
#define RH_SIX_ARGUMENTS
#endif

#if defined(__GLIBC__)

// What the compiler calls in place of a function named like it, where it knows the buffer's size, ends here when that
// is too small. Weak: absent where no program calls them.
extern "C" [[noreturn, gnu::weak]] void __chk_fail();

extern "C" {
int __poll_chk(pollfd* files, nfds_t count, int timeout, size_t room);
int __ppoll_chk(pollfd* files, nfds_t count, const timespec* timeout, const sigset_t* set, size_t room);
ssize_t __read_chk(int file, void* buffer, size_t size, size_t room);
ssize_t __recv_chk(int file, void* buffer, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int file, void* buffer, size_t size, size_t room, int flags, sockaddr* from, socklen_t* length);
}

#endif

namespace rh::waits {

using platform::system_call;

// The kernel's signal set.
struct Mask {
  uint64_t bits;
};
inline constexpr Mask kAll = {~uint64_t{0}};

inline const Mask* of_kernel(const sigset_t* set) { return reinterpret_cast<const Mask*>(set); }

inline void set_mask(const Mask& mask, Mask* old) {
  system_call(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&mask), reinterpret_cast<long>(old),
              sizeof(mask));
}

inline constexpr long kNanoseconds = 1000000000;

inline timespec minus(const timespec& a, const timespec& b) {
  timespec difference = {a.tv_sec - b.tv_sec, a.tv_nsec - b.tv_nsec};
  if (difference.tv_nsec < 0) --difference.tv_sec, difference.tv_nsec += kNanoseconds;
  if (difference.tv_sec < 0) return {};
  return difference;
}

inline timespec now() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time;
}

// When a wait of that length ends that begins now; at the end of time where it is longer than that.
inline timespec end_after(const timespec& length) {
  const timespec start = now();
  timespec end = {0, start.tv_nsec + length.tv_nsec};
  const time_t carry = end.tv_nsec >= kNanoseconds ? 1 : 0;
  end.tv_nsec -= carry * kNanoseconds;
  const bool never = __builtin_add_overflow(start.tv_sec + carry, length.tv_sec, &end.tv_sec);
  return never ? timespec{std::numeric_limits<time_t>::max(), 0} : end;
}

inline timespec left_until(const timespec& end) { return minus(end, now()); }

inline bool is_longer(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

inline timespec from_ms(uint64_t ms) {
  return {static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000) * 1000000};
}

// How long memory stays warm; a little more, for the clock has a grain.
inline timespec warm_time() { return from_ms(idle::decay_ms() + 10); }

inline bool is_valid(const timespec& time) {
  return time.tv_sec >= 0 && time.tv_nsec >= 0 && time.tv_nsec < kNanoseconds;
}

// Whether a wait of this length (null: for ever) is to have two parts.
inline bool has_two_parts(const timespec* timeout) {
  if (!idle::returns_before_waiting() || sandbox::is_closed()) return false;
  return timeout == nullptr || (is_valid(*timeout) && is_longer(*timeout, warm_time()));
}

inline bool is_over(const timespec& time) { return time.tv_sec == 0 && time.tv_nsec == 0; }

// All signals are blocked. Memory goes back, and now and then the thread looks whether its wait is over (`end` null: it
// has no end): what `wait` gives then, else 0.
template <typename Wait> long return_memory(const timespec* end, const Mask* mask, Wait wait) {
  for (bool more = true; more;) {
    more = idle::return_while_waiting();
    if (end != nullptr && is_over(left_until(*end))) break;
    timespec glance = {0, 1};
    if (long result = more ? wait(&glance, mask) : 0; result != 0) return result;
  }
  return 0;
}

// The second part. All signals are blocked. What came while memory went back is asked for even where the time is over.
template <typename Wait> long wait_second(timespec* timeout, const Mask* mask, Wait wait) {
  const timespec end = timeout != nullptr ? end_after(*timeout) : timespec{};
  if (long result = return_memory(timeout != nullptr ? &end : nullptr, mask, wait); result != 0) return result;
  if (timeout != nullptr) *timeout = left_until(end);
  return wait(timeout, mask);
}

// `wait(timeout, mask)` is a call of the kernel that gives 0 when the time is over, and leaves in *timeout what is left
// of it. So does this.
template <typename Wait> long wait_in_two_parts(timespec* timeout, const Mask* mask, Wait wait) {
  const timespec end = timeout != nullptr ? end_after(*timeout) : timespec{};
  Mask before = {};
  set_mask(kAll, &before);
  if (mask == nullptr) mask = &before;
  timespec first = warm_time();
  long result = wait(&first, mask);
  if (timeout != nullptr) *timeout = left_until(end);
  if (result == 0) result = wait_second(timeout, mask, wait);
  set_mask(before, nullptr);
  return result;
}

// As wait_in_two_parts, up to a time of the monotonic clock. A wait of this kind ends then whether or not the program
// was stopped meanwhile (SIGSTOP), while the kernel resumes `wait` with what was left of its time. So `last`, which it
// resumes with the same end, comes at the end of the second part. Signals are let in before that, as before any call.
template <typename Wait, typename Last> long wait_until(const timespec& end, Wait wait, Last last) {
  Mask before = {};
  set_mask(kAll, &before);
  timespec first = warm_time(), glance = {0, 1};
  long result = wait(&first, &before);
  if (result == 0) result = return_memory(&end, &before, wait);
  if (result == 0) result = wait(&glance, &before);
  set_mask(before, nullptr);
  return result != 0 ? result : last();
}

template <typename Result = int> Result answer(long result) {
  if (!platform::is_error(result)) return static_cast<Result>(result);
  errno = static_cast<int>(-result);
  return -1;
}

// Their attributes (of threads, of exceptions) are of no use here.
#define RH_NEXT(name)                                                                                            \
  _Pragma("GCC diagnostic push")                                                                                 \
      _Pragma("GCC diagnostic ignored \"-Wignored-attributes\"") static constinit NextFunction<decltype(::name)> \
          g_##name{#name};                                                                                       \
  _Pragma("GCC diagnostic pop")

// The C library's function, or, where it is not to be found, the kernel's, which a thread may be cancelled in.
template <typename Function, typename Call, typename... Arguments>
auto next_or(const NextFunction<Function>& next, Call call, Arguments... arguments) {
  if (Function* function = next.known()) return function(arguments...);
  int type = 0;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
  auto result = call();
  pthread_setcanceltype(type, nullptr);
  return result;
}

inline long kernel_poll(pollfd* files, nfds_t count, timespec* timeout, const Mask* mask) {
  return system_call(SYS_ppoll, reinterpret_cast<long>(files), static_cast<long>(count),
                     reinterpret_cast<long>(timeout), reinterpret_cast<long>(mask), sizeof(Mask));
}

}  // namespace rh::waits
