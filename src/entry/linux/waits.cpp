// The C library's waits, for programs of one thread: no other thread may be made there to return memory while it waits
// (heap/idle.h), so it does so itself. These may have a time limit; endless_waits.cpp has those that have none.
//
// All signals are blocked from before the first part to the end of the second, but within both: one that comes while
// memory is returned interrupts the second part, as it would have interrupted the whole.
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "base/compiler.h"
#include "entry/linux/origin.h"
#include "entry/linux/two_parts.h"
#include "entry/linux/waits.h"

using namespace rh;
using namespace rh::waits;

RH_NEXT(poll)
RH_NEXT(ppoll)
RH_NEXT(nanosleep)
RH_NEXT(clock_nanosleep)
RH_NEXT(usleep)
RH_NEXT(sleep)
#if defined(RH_SIX_ARGUMENTS)
RH_NEXT(select)
RH_NEXT(pselect)
RH_NEXT(epoll_wait)
RH_NEXT(epoll_pwait)
#endif

namespace {

// Leaves in *time what is left of it; 0, or a negated error number.
long kernel_sleep(timespec* time) { return kernel_poll(nullptr, 0, time, nullptr); }

int to_ms(const timespec& time) { return static_cast<int>(time.tv_sec * 1000 + (time.tv_nsec + 999999) / 1000000); }

long sleep_until(const timespec& end) {
  auto wait = [](timespec* time, const Mask* mask) { return kernel_poll(nullptr, 0, time, mask); };
  auto last = [&end] {
    return system_call(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, reinterpret_cast<long>(&end), 0);
  };
  return wait_until(end, wait, last);
}

long sleep_in_two_parts(timespec* time) {
  const timespec end = end_after(*time);
  const long result = sleep_until(end);
  *time = left_until(end);
  return result;
}

}  // namespace

RH_AT_START void waits::resolve() {
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
  resolve_endless();
}

namespace {

int do_poll(pollfd* files, nfds_t count, int timeout) {
  timespec time = from_ms(timeout < 0 ? 0 : static_cast<uint64_t>(timeout));
  timespec* limit = timeout < 0 ? nullptr : &time;
  auto wait = [=](timespec* for_time, const Mask* mask) { return kernel_poll(files, count, for_time, mask); };
  if (has_two_parts(limit)) {
    auto* next = g_poll.known();
    if (limit == nullptr || next == nullptr) return answer(wait_in_two_parts(limit, nullptr, wait));
    const timespec end = end_after(*limit);
    auto last = [=]() -> long {
      const int result = next(files, count, to_ms(left_until(end)));
      return result < 0 ? -errno : result;
    };
    return answer(wait_until(end, wait, last));
  }
  return next_or(g_poll, [=] { return answer(wait(limit, nullptr)); }, files, count, timeout);
}

int do_ppoll(pollfd* files, nfds_t count, const timespec* timeout, const sigset_t* set) {
  timespec time = timeout != nullptr ? *timeout : timespec{};
  timespec* limit = timeout != nullptr ? &time : nullptr;
  auto wait = [=](timespec* for_time, const Mask* mask) { return kernel_poll(files, count, for_time, mask); };
  if (has_two_parts(limit)) return answer(wait_in_two_parts(limit, of_kernel(set), wait));
  return next_or(g_ppoll, [=] { return answer(wait(limit, of_kernel(set))); }, files, count, timeout, set);
}

}  // namespace

RH_WAIT int poll(pollfd* files, nfds_t count, int timeout) { return do_poll(files, count, timeout); }

#if defined(__GLIBC__)
RH_WAIT int __poll_chk(pollfd* files, nfds_t count, int timeout, size_t room) {
  if (count > room / sizeof(pollfd)) __chk_fail();
  return do_poll(files, count, timeout);
}
#endif

RH_WAIT int ppoll(pollfd* files, nfds_t count, const timespec* timeout, const sigset_t* set) {
  return do_ppoll(files, count, timeout, set);
}

#if defined(__GLIBC__)
RH_WAIT int __ppoll_chk(pollfd* files, nfds_t count, const timespec* timeout, const sigset_t* set, size_t room) {
  if (count > room / sizeof(pollfd)) __chk_fail();
  return do_ppoll(files, count, timeout, set);
}
#endif

RH_WAIT int nanosleep(const timespec* time, timespec* left) {
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
      [=] { return answer(system_call(SYS_nanosleep, reinterpret_cast<long>(time), reinterpret_cast<long>(left))); },
      time, left);
}

static bool sleeps_in_two_parts(const timespec* end) {
  if (end == nullptr || !is_valid(*end)) return false;
  const timespec length = left_until(*end);
  return has_two_parts(&length);
}

// Until a time of day the wait stays whole: the clock may be set meanwhile.
RH_WAIT int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  if (flags == TIMER_ABSTIME && clock == CLOCK_MONOTONIC && sleeps_in_two_parts(time))
    return static_cast<int>(-sleep_until(*time));
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
        return static_cast<int>(-system_call(SYS_clock_nanosleep, clock, flags, reinterpret_cast<long>(time),
                                             reinterpret_cast<long>(left)));
      },
      clock, flags, time, left);
}

RH_WAIT int usleep(useconds_t time) {
  timespec rest = {static_cast<time_t>(time / 1000000), static_cast<long>(time % 1000000) * 1000};
  if (has_two_parts(&rest)) return answer(sleep_in_two_parts(&rest));
  return next_or(g_usleep, [&rest] { return answer(kernel_sleep(&rest)); }, time);
}

// Gives the seconds left.
RH_WAIT unsigned sleep(unsigned time) {
  timespec rest = {static_cast<time_t>(time), 0};
  auto seconds_left = [&rest](long result) {
    return result == 0 ? 0u : static_cast<unsigned>(rest.tv_sec + (rest.tv_nsec >= kNanoseconds / 2));
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
    for (int at = 0; at < 3; ++at)
      if (given[at] != nullptr) __builtin_memcpy(&asked[at], given[at], bytes);
  }

  void ask() {
    for (int at = 0; at < 3; ++at)
      if (given[at] != nullptr) __builtin_memcpy(given[at], &asked[at], bytes);
  }
};

long kernel_select(int count, fd_set* const* sets, timespec* timeout, const Mask* mask) {
  struct {
    const Mask* mask;
    size_t size;
  } signals = {mask, sizeof(Mask)};
  return system_call(SYS_pselect6, count, reinterpret_cast<long>(sets[0]), reinterpret_cast<long>(sets[1]),
                     reinterpret_cast<long>(sets[2]), reinterpret_cast<long>(timeout),
                     reinterpret_cast<long>(&signals));
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

int epoll_in_two_parts(int epoll, epoll_event* events, int most, timespec* limit, const Mask* set) {
  return answer(wait_in_two_parts(limit, set, [=](timespec* time, const Mask* mask) {
    return kernel_epoll(epoll, events, most, time == nullptr ? -1 : to_ms(*time), mask);
  }));
}

}  // namespace

RH_WAIT int select(int count, fd_set* read, fd_set* write, fd_set* except, timeval* timeout) {
  timespec time = {};
  if (timeout != nullptr) time = {timeout->tv_sec, timeout->tv_usec * 1000};
  timespec* limit = timeout != nullptr ? &time : nullptr;
  fd_set* const sets[] = {read, write, except};
  auto wait = [&](bool two_parts) {
    long result =
        two_parts ? select_in_two_parts(count, sets, limit, nullptr) : kernel_select(count, sets, limit, nullptr);
    if (timeout != nullptr) *timeout = {time.tv_sec, time.tv_nsec / 1000};
    return answer(result);
  };
  if (selects_in_two_parts(count, limit)) return wait(true);
  return next_or(g_select, [&] { return wait(false); }, count, read, write, except, timeout);
}

RH_WAIT int pselect(int count, fd_set* read, fd_set* write, fd_set* except, const timespec* timeout,
                    const sigset_t* set) {
  timespec time = timeout != nullptr ? *timeout : timespec{};
  timespec* limit = timeout != nullptr ? &time : nullptr;
  fd_set* const sets[] = {read, write, except};
  if (selects_in_two_parts(count, limit)) return answer(select_in_two_parts(count, sets, limit, of_kernel(set)));
  return next_or(
      g_pselect, [&] { return answer(kernel_select(count, sets, limit, of_kernel(set))); }, count, read, write, except,
      timeout, set);
}

RH_WAIT int epoll_pwait(int epoll, epoll_event* events, int most, int timeout, const sigset_t* set) {
  timespec time = from_ms(timeout < 0 ? 0 : static_cast<uint64_t>(timeout));
  timespec* limit = timeout < 0 ? nullptr : &time;
  if (has_two_parts(limit)) return epoll_in_two_parts(epoll, events, most, limit, of_kernel(set));
  return next_or(
      g_epoll_pwait, [=] { return answer(kernel_epoll(epoll, events, most, timeout, of_kernel(set))); }, epoll, events,
      most, timeout, set);
}

RH_WAIT int epoll_wait(int epoll, epoll_event* events, int most, int timeout) {
  timespec time = from_ms(timeout < 0 ? 0 : static_cast<uint64_t>(timeout));
  timespec* limit = timeout < 0 ? nullptr : &time;
  if (has_two_parts(limit)) return epoll_in_two_parts(epoll, events, most, limit, nullptr);
  return next_or(
      g_epoll_wait, [=] { return answer(kernel_epoll(epoll, events, most, timeout, nullptr)); }, epoll, events, most,
      timeout);
}

#endif
