// The C library's waits, for programs of one thread: no other thread may be made there to return memory while it waits
// (heap/idle.h), so it does so itself. Where much is free a wait has two parts: for as long as memory is to stay
// warm, then, memory returned, for the rest.
//
// All signals are blocked from before the first part to the end of the second, but within both: one that comes while
// memory is returned interrupts the second part, as it would have interrupted the whole.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include "entry/linux/next.h"
#include "entry/linux/sandbox.h"
#include "entry/linux/waits.h"
#include "entry/origin.h"
#include "heap/idle.h"
#include "platform/linux/syscall.h"
#include "platform/platform.h"

#define RH_EXPORT extern "C" [[gnu::visibility("default")]]

using namespace rh;
using platform::system_call;

namespace {

// The kernel's signal set.
struct Mask {
  uint64_t bits;
};
constexpr Mask kAll = {~uint64_t{0}};

const Mask* of_kernel(const sigset_t* set) { return reinterpret_cast<const Mask*>(set); }

void set_mask(const Mask& mask, Mask* old) {
  system_call(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&mask),
              reinterpret_cast<long>(old), sizeof(mask));
}

constexpr long kNanoseconds = 1000000000;

timespec minus(const timespec& a, const timespec& b) {
  timespec difference = {a.tv_sec - b.tv_sec, a.tv_nsec - b.tv_nsec};
  if (difference.tv_nsec < 0) --difference.tv_sec, difference.tv_nsec += kNanoseconds;
  if (difference.tv_sec < 0) return {};
  return difference;
}

timespec plus(const timespec& a, const timespec& b) {
  timespec sum = {a.tv_sec + b.tv_sec, a.tv_nsec + b.tv_nsec};
  if (sum.tv_nsec >= kNanoseconds) ++sum.tv_sec, sum.tv_nsec -= kNanoseconds;
  return sum;
}

bool is_longer(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

timespec from_ms(uint64_t ms) {
  return {static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000) * 1000000};
}

// How long memory stays warm; a little more, for the clock has a grain.
timespec warm_time() { return from_ms(idle::decay_ms() + 10); }

bool is_valid(const timespec& time) {
  return time.tv_sec >= 0 && time.tv_nsec >= 0 && time.tv_nsec < kNanoseconds;
}

// Whether a wait of this length (null: for ever) is to have two parts.
bool has_two_parts(const timespec* timeout) {
  if (!idle::returns_before_waiting() || sandbox::is_closed()) return false;
  return timeout == nullptr || (is_valid(*timeout) && is_longer(*timeout, warm_time()));
}

// `wait(timeout, mask)` is a call of the kernel that gives 0 when the time is over, and leaves in *timeout what is left
// of it. So does this.
template <typename Wait>
long wait_in_two_parts(timespec* timeout, const Mask* mask, Wait wait) {
  Mask before = {};
  set_mask(kAll, &before);
  if (mask == nullptr) mask = &before;
  timespec first = warm_time();
  timespec rest = timeout != nullptr ? minus(*timeout, first) : timespec{};
  long result = wait(&first, mask);
  if (result != 0) {
    if (timeout != nullptr) *timeout = plus(first, rest);
  } else {
    uint64_t start = platform::now_ms();
    idle::return_while_waiting();
    if (timeout != nullptr) *timeout = minus(rest, from_ms(platform::now_ms() - start));
    result = wait(timeout, mask);
  }
  set_mask(before, nullptr);
  return result;
}

int answer(long result) {
  if (!platform::is_error(result)) return static_cast<int>(result);
  errno = static_cast<int>(-result);
  return -1;
}

// ---- the functions themselves -------------------------------------------------------------------

// Their attributes (of threads, of exceptions) are of no use here.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#define RH_NEXT(name) \
  constinit NextFunction<decltype(name)> g_##name { #name }
RH_NEXT(poll);
RH_NEXT(ppoll);
RH_NEXT(nanosleep);
RH_NEXT(clock_nanosleep);
RH_NEXT(usleep);
RH_NEXT(sleep);
#if !defined(__i386__)  // where a system call has five arguments at most (platform/linux/syscall.h)
#define RH_SIX_ARGUMENTS
RH_NEXT(select);
RH_NEXT(pselect);
RH_NEXT(epoll_wait);
RH_NEXT(epoll_pwait);
#endif
#undef RH_NEXT
#pragma GCC diagnostic pop

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

long kernel_poll(pollfd* files, nfds_t count, timespec* timeout, const Mask* mask) {
  return system_call(SYS_ppoll, reinterpret_cast<long>(files), static_cast<long>(count),
                     reinterpret_cast<long>(timeout), reinterpret_cast<long>(mask), sizeof(Mask));
}

// Leaves in *time what is left of it; 0, or a negated error number.
long kernel_sleep(timespec* time) { return kernel_poll(nullptr, 0, time, nullptr); }

long sleep_in_two_parts(timespec* time) {
  return wait_in_two_parts(time, nullptr, [](timespec* timeout, const Mask* mask) {
    return kernel_poll(nullptr, 0, timeout, mask);
  });
}

}  // namespace

void waits::resolve() {
  // Opened by dlopen the library stands in for nothing.
  if (origin::serves_malloc()) idle::let_waits_return();
  g_poll.look_up();
  g_ppoll.look_up();
  g_nanosleep.look_up();
  g_clock_nanosleep.look_up();
  g_usleep.look_up();
  g_sleep.look_up();
#if defined(RH_SIX_ARGUMENTS)
  g_select.look_up();
  g_pselect.look_up();
  g_epoll_wait.look_up();
  g_epoll_pwait.look_up();
#endif
}

RH_EXPORT int poll(pollfd* files, nfds_t count, int timeout) {
  timespec time = from_ms(timeout < 0 ? 0 : static_cast<uint64_t>(timeout));
  timespec* limit = timeout < 0 ? nullptr : &time;
  auto wait = [=](timespec* for_time, const Mask* mask) {
    return kernel_poll(files, count, for_time, mask);
  };
  if (has_two_parts(limit)) return answer(wait_in_two_parts(limit, nullptr, wait));
  return next_or(g_poll, [=] { return answer(wait(limit, nullptr)); }, files, count, timeout);
}

RH_EXPORT int ppoll(pollfd* files, nfds_t count, const timespec* timeout, const sigset_t* set) {
  timespec time = timeout != nullptr ? *timeout : timespec{};
  timespec* limit = timeout != nullptr ? &time : nullptr;
  auto wait = [=](timespec* for_time, const Mask* mask) {
    return kernel_poll(files, count, for_time, mask);
  };
  if (has_two_parts(limit)) return answer(wait_in_two_parts(limit, of_kernel(set), wait));
  return next_or(
      g_ppoll, [=] { return answer(wait(limit, of_kernel(set))); }, files, count, timeout, set);
}

RH_EXPORT int nanosleep(const timespec* time, timespec* left) {
  auto interrupted = [left](long result, const timespec& rest) {
    if (result == -EINTR && left != nullptr) *left = rest;
    return answer(result);
  };
  if (time != nullptr && has_two_parts(time)) {
    timespec rest = *time;
    long result = sleep_in_two_parts(&rest);
    return interrupted(result, rest);
  }
  return next_or(
      g_nanosleep,
      [=] {
        return answer(
            system_call(SYS_nanosleep, reinterpret_cast<long>(time), reinterpret_cast<long>(left)));
      },
      time, left);
}

// Until a time of day the wait stays whole: the clock may be set meanwhile.
RH_EXPORT int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  bool relative = flags == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC);
  if (relative && time != nullptr && has_two_parts(time)) {
    timespec rest = *time;
    long result = sleep_in_two_parts(&rest);
    if (result == -EINTR && left != nullptr) *left = rest;
    return static_cast<int>(-result);
  }
  return next_or(
      g_clock_nanosleep,
      [=] {
        return static_cast<int>(-system_call(SYS_clock_nanosleep, clock, flags,
                                             reinterpret_cast<long>(time),
                                             reinterpret_cast<long>(left)));
      },
      clock, flags, time, left);
}

RH_EXPORT int usleep(useconds_t time) {
  timespec rest = {static_cast<time_t>(time / 1000000), static_cast<long>(time % 1000000) * 1000};
  if (has_two_parts(&rest)) return answer(sleep_in_two_parts(&rest));
  return next_or(g_usleep, [&rest] { return answer(kernel_sleep(&rest)); }, time);
}

// Gives the seconds left.
RH_EXPORT unsigned sleep(unsigned time) {
  timespec rest = {static_cast<time_t>(time), 0};
  auto seconds_left = [&rest](long result) {
    return result == 0 ? 0u
                       : static_cast<unsigned>(rest.tv_sec + (rest.tv_nsec >= kNanoseconds / 2));
  };
  if (has_two_parts(&rest)) return seconds_left(sleep_in_two_parts(&rest));
  return next_or(g_sleep, [&] { return seconds_left(kernel_sleep(&rest)); }, time);
}

#if defined(RH_SIX_ARGUMENTS)

namespace {

// A wait that finds nothing empties the sets it was given.
constexpr int kMostFiles = FD_SETSIZE;

struct Sets {
  fd_set* given[3];
  fd_set asked[3];
  size_t bytes;

  Sets(int count, fd_set* read, fd_set* write, fd_set* except)
      : given{read, write, except}, bytes((static_cast<size_t>(count) + 63) / 64 * 8) {
    for (int at = 0; at < 3; ++at) {
      if (given[at] != nullptr) __builtin_memcpy(&asked[at], given[at], bytes);
    }
  }

  void ask() {
    for (int at = 0; at < 3; ++at) {
      if (given[at] != nullptr) __builtin_memcpy(given[at], &asked[at], bytes);
    }
  }
};

long kernel_select(int count, fd_set* const* sets, timespec* timeout, const Mask* mask) {
  struct {
    const Mask* mask;
    size_t size;
  } signals = {mask, sizeof(Mask)};
  return system_call(SYS_pselect6, count, reinterpret_cast<long>(sets[0]),
                     reinterpret_cast<long>(sets[1]), reinterpret_cast<long>(sets[2]),
                     reinterpret_cast<long>(timeout), reinterpret_cast<long>(&signals));
}

bool selects_in_two_parts(int count, const timespec* timeout) {
  return count >= 0 && count <= kMostFiles && has_two_parts(timeout);
}

long select_in_two_parts(int count, fd_set* const* sets, timespec* timeout, const Mask* mask) {
  Sets both(count, sets[0], sets[1], sets[2]);
  return wait_in_two_parts(timeout, mask, [&](timespec* time, const Mask* signals) {
    both.ask();
    return kernel_select(count, sets, time, signals);
  });
}

long kernel_epoll(int epoll, epoll_event* events, int most, int timeout, const Mask* mask) {
  return system_call(SYS_epoll_pwait, epoll, reinterpret_cast<long>(events), most, timeout,
                     reinterpret_cast<long>(mask), sizeof(Mask));
}

int to_ms(const timespec* time) {
  if (time == nullptr) return -1;
  return static_cast<int>(time->tv_sec * 1000 + (time->tv_nsec + 999999) / 1000000);
}

int epoll_in_two_parts(int epoll, epoll_event* events, int most, timespec* limit, const Mask* set) {
  return answer(wait_in_two_parts(limit, set, [=](timespec* time, const Mask* mask) {
    return kernel_epoll(epoll, events, most, to_ms(time), mask);
  }));
}

}  // namespace

RH_EXPORT int select(int count, fd_set* read, fd_set* write, fd_set* except, timeval* timeout) {
  timespec time = {};
  if (timeout != nullptr) time = {timeout->tv_sec, timeout->tv_usec * 1000};
  timespec* limit = timeout != nullptr ? &time : nullptr;
  fd_set* const sets[] = {read, write, except};
  auto wait = [&](bool two_parts) {
    long result = two_parts ? select_in_two_parts(count, sets, limit, nullptr)
                            : kernel_select(count, sets, limit, nullptr);
    if (timeout != nullptr) *timeout = {time.tv_sec, time.tv_nsec / 1000};
    return answer(result);
  };
  if (selects_in_two_parts(count, limit)) return wait(true);
  return next_or(g_select, [&] { return wait(false); }, count, read, write, except, timeout);
}

RH_EXPORT int pselect(int count, fd_set* read, fd_set* write, fd_set* except,
                      const timespec* timeout, const sigset_t* set) {
  timespec time = timeout != nullptr ? *timeout : timespec{};
  timespec* limit = timeout != nullptr ? &time : nullptr;
  fd_set* const sets[] = {read, write, except};
  if (selects_in_two_parts(count, limit)) {
    return answer(select_in_two_parts(count, sets, limit, of_kernel(set)));
  }
  return next_or(
      g_pselect, [&] { return answer(kernel_select(count, sets, limit, of_kernel(set))); }, count,
      read, write, except, timeout, set);
}

RH_EXPORT int epoll_pwait(int epoll, epoll_event* events, int most, int timeout,
                          const sigset_t* set) {
  timespec time = from_ms(timeout < 0 ? 0 : static_cast<uint64_t>(timeout));
  timespec* limit = timeout < 0 ? nullptr : &time;
  if (has_two_parts(limit)) {
    return epoll_in_two_parts(epoll, events, most, limit, of_kernel(set));
  }
  return next_or(
      g_epoll_pwait,
      [=] { return answer(kernel_epoll(epoll, events, most, timeout, of_kernel(set))); }, epoll,
      events, most, timeout, set);
}

RH_EXPORT int epoll_wait(int epoll, epoll_event* events, int most, int timeout) {
  timespec time = from_ms(timeout < 0 ? 0 : static_cast<uint64_t>(timeout));
  timespec* limit = timeout < 0 ? nullptr : &time;
  if (has_two_parts(limit)) return epoll_in_two_parts(epoll, events, most, limit, nullptr);
  return next_or(
      g_epoll_wait, [=] { return answer(kernel_epoll(epoll, events, most, timeout, nullptr)); },
      epoll, events, most, timeout);
}

#endif
