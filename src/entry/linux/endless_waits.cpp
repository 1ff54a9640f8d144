// The C library's waits that have no time limit, for programs of one thread (waits.cpp): for input, for children, for
// signals.
//
// Before a call that is going to wait the thread waits for the same, as long as memory is to stay warm. It does so with
// all signals blocked, and asks a descriptor for them: which of them came decides whether the call would have gone on
// (SA_RESTART) or ended.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "entry/linux/two_parts.h"
#include "entry/linux/waits.h"

using namespace rh;
using namespace rh::waits;

namespace {

template <typename Object> long word(Object* pointer) { return reinterpret_cast<long>(pointer); }

long word(size_t size) { return static_cast<long>(size); }

// ---- signals ------------------------------------------------------------------------------------

constexpr uint64_t bit_of(int signal) { return uint64_t{1} << (signal - 1); }

uint64_t pending_signals() {
  Mask pending = {};
  system_call(SYS_rt_sigpending, word(&pending), sizeof(pending));
  return pending.bits;
}

// As the kernel has it.
struct Action {
  uintptr_t handler;
  unsigned long flags;
  uintptr_t restorer;
  uint64_t mask;

  bool is_handled() const { return handler > 1; }  // neither by default nor ignored
  bool is_ignored() const { return handler == 1; }
};

Action action_of(int signal) {
  Action action = {};
  system_call(SYS_rt_sigaction, signal, 0, word(&action), sizeof(action.mask));
  return action;
}

enum class Restarts : uint8_t { never, if_asked };

// Whether one of these, delivered, ends a call.
bool interrupts(uint64_t signals, Restarts restarts) {
  for (int signal = 1; signals != 0; ++signal, signals >>= 1) {
    if (signals % 2 == 0) continue;
    Action action = action_of(signal);
    bool goes_on = restarts == Restarts::if_asked && (action.flags & SA_RESTART) != 0;
    if (action.is_handled() && !goes_on) return true;
  }
  return false;
}

// ---- the first part -----------------------------------------------------------------------------

// What a call waits for.
struct Input {
  pollfd file;

  static constexpr uint64_t kSignal = 0;
  bool is_there() { return file.revents != 0; }
};

struct Child {
  pollfd file{-1, 0, 0};
  idtype_t type;
  id_t id;
  int options;

  static constexpr uint64_t kSignal = bit_of(SIGCHLD);
  bool is_there() {
    siginfo_t found = {};
    long result = system_call(SYS_waitid, type, static_cast<long>(id), word(&found), options | WNOHANG | WNOWAIT);
    return result != 0 || found.si_pid != 0;
  }
};

enum class First { over, signalled, interrupted };

// What is left of it: time, and then memory to return.
struct FirstPart {
  timespec time = warm_time();
  bool memory = true;

  bool is_over() const { return waits::is_over(time) && !memory; }
};

// With signals blocked but for those that `signals`, a descriptor, tells of.
template <typename What> First wait_first(What& what, int signals, uint64_t open, FirstPart* left) {
  pollfd both[] = {what.file, {signals, POLLIN, 0}};
  long result = kernel_poll(both, 2, &left->time, nullptr);
  while (result == 0 && left->memory) {
    left->memory = idle::return_while_waiting();
    result = kernel_poll(both, 2, &left->time, nullptr);
  }
  what.file = both[0];
  if (result <= 0 || what.is_there()) return First::over;
  return interrupts(pending_signals() & open, Restarts::if_asked) ? First::interrupted : First::signalled;
}

template <typename What> First wait_first(What& what, FirstPart* left) {
  First outcome = First::over;
  Mask before = {};
  set_mask(kAll, &before);
  Mask awaited = {~before.bits | What::kSignal};
  // One that the program has blocked, and that came before, does not come again.
  bool is_told = (pending_signals() & before.bits & What::kSignal) == 0;
  long signals = is_told ? system_call(SYS_signalfd4, -1, word(&awaited), sizeof(awaited), O_CLOEXEC) : -1;
  if (!platform::is_error(signals)) {
    outcome = wait_first(what, static_cast<int>(signals), ~before.bits, left);
    system_call(SYS_close, signals);
  }
  set_mask(before, nullptr);
  return outcome;
}

// False when the call is over, interrupted.
template <typename What> bool go_on_after_first(What what) {
  FirstPart left;
  First outcome = First::signalled;
  while (outcome == First::signalled && !left.is_over()) outcome = wait_first(what, &left);
  if (outcome == First::interrupted) errno = EINTR;
  return outcome != First::interrupted;
}

// ---- input --------------------------------------------------------------------------------------

// A socket whose waits have no time limit, or a pipe: what else can be read has ways of its own.
bool waits_for_ever(int file) {
  long flags = system_call(SYS_fcntl, file, F_GETFL);
  if ((flags & O_NONBLOCK) != 0 || (flags & O_ACCMODE) == O_WRONLY) return false;
  timeval limit = {};
  socklen_t size = sizeof(limit);
  long result = system_call(SYS_getsockopt, file, SOL_SOCKET, SO_RCVTIMEO, word(&limit), word(&size));
  if (result == 0) return limit.tv_sec == 0 && limit.tv_usec == 0;
  return result == -ENOTSOCK && !platform::is_error(system_call(SYS_fcntl, file, F_GETPIPE_SZ));
}

// Before a call that takes input. False when that was interrupted.
bool await_input(int file) {
  if (!has_two_parts(nullptr)) return true;
  Input input{{file, POLLIN, 0}};
  timespec none = {};
  if (kernel_poll(&input.file, 1, &none, nullptr) != 0 || !waits_for_ever(file)) return true;
  return go_on_after_first(input);
}

bool await_input(int file, int flags) {
  constexpr int kWait = MSG_PEEK | MSG_WAITALL | MSG_TRUNC | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC;
  return (flags & ~kWait) != 0 || await_input(file);
}

// ---- children -----------------------------------------------------------------------------------

// Before a call that waits for a child. False when that was interrupted.
bool await_child(idtype_t type, id_t id, int options) {
  constexpr int kKnown = WEXITED | WSTOPPED | WCONTINUED | WNOWAIT;
  if ((options & ~kKnown) != 0 || !has_two_parts(nullptr)) return true;
  Action action = action_of(SIGCHLD);
  bool stops = (options & (WSTOPPED | WCONTINUED)) != 0;
  bool is_silent =
      action.is_ignored() || (action.flags & SA_NOCLDWAIT) != 0 || (stops && (action.flags & SA_NOCLDSTOP) != 0);
  Child child{{-1, 0, 0}, type, id, options};
  return is_silent || child.is_there() || go_on_after_first(child);
}

// As wait4 names them.
bool await_child(pid_t process, int options) {
  if (process == -1) return await_child(P_ALL, 0, options | WEXITED);
  if (process > 0) return await_child(P_PID, static_cast<id_t>(process), options | WEXITED);
  long group = process == 0 ? system_call(SYS_getpgid, 0) : -process;
  return await_child(P_PGID, static_cast<id_t>(group), options | WEXITED);
}

pid_t kernel_wait(pid_t process, int* status, int options, rusage* usage) {
  return answer(system_call(SYS_wait4, process, word(status), options, word(usage)));
}

// ---- signals as what is waited for --------------------------------------------------------------

long kernel_take_signal(const sigset_t* set, siginfo_t* info, const timespec* timeout) {
  siginfo_t found = {};
  long result = system_call(SYS_rt_sigtimedwait, word(set), word(&found), word(timeout), sizeof(Mask));
  if (platform::is_error(result) || info == nullptr) return result;
  if (found.si_code == SI_TKILL) found.si_code = SI_USER;  // as the C library
  *info = found;
  return result;
}

long take_signal_in_two_parts(const sigset_t* set, siginfo_t* info, const timespec* timeout) {
  timespec first = warm_time();
  long result = kernel_take_signal(set, info, &first);
  if (result != -EAGAIN) return result;
  timespec rest = timeout != nullptr ? minus(*timeout, first) : timespec{};
  Mask before = {};
  set_mask(kAll, &before);
  const auto take = [&](timespec* time, const Mask*) {
    const uint64_t others = pending_signals() & ~before.bits & ~of_kernel(set)->bits;
    const bool interrupted = interrupts(others, Restarts::never);
    set_mask(before, nullptr);
    const long taken = interrupted ? -EINTR : kernel_take_signal(set, info, time);
    set_mask(kAll, nullptr);
    return taken != -EAGAIN ? taken : 0;
  };
  result = wait_second(timeout != nullptr ? &rest : nullptr, nullptr, take);
  set_mask(before, nullptr);
  return result != 0 ? result : -EAGAIN;
}

// For any signal of the program's, all but these blocked.
int suspend(const Mask* mask) {
  return answer(wait_in_two_parts(
      nullptr, mask, [](timespec* time, const Mask* signals) { return kernel_poll(nullptr, 0, time, signals); }));
}

}  // namespace

// ---- the functions themselves -------------------------------------------------------------------

RH_NEXT(read)
RH_NEXT(readv)
#if defined(RH_SIX_ARGUMENTS)
RH_NEXT(recv)
RH_NEXT(recvfrom)
#endif
RH_NEXT(recvmsg)
RH_NEXT(accept)
RH_NEXT(accept4)
RH_NEXT(wait)
RH_NEXT(waitpid)
RH_NEXT(wait3)
RH_NEXT(wait4)
RH_NEXT(waitid)
RH_NEXT(pause)
RH_NEXT(sigsuspend)
RH_NEXT(sigwait)
RH_NEXT(sigwaitinfo)
RH_NEXT(sigtimedwait)

RH_AT_START void waits::resolve_endless() {
  g_read.look_up();
  g_readv.look_up();
#if defined(RH_SIX_ARGUMENTS)
  g_recv.look_up();
  g_recvfrom.look_up();
#endif
  g_recvmsg.look_up();
  g_accept.look_up();
  g_accept4.look_up();
  g_wait.look_up();
  g_waitpid.look_up();
  g_wait3.look_up();
  g_wait4.look_up();
  g_waitid.look_up();
  g_pause.look_up();
  g_sigsuspend.look_up();
  g_sigwait.look_up();
  g_sigwaitinfo.look_up();
  g_sigtimedwait.look_up();
}

namespace {

ssize_t do_read(int file, void* buffer, size_t size) {
  if (size != 0 && !await_input(file)) return -1;
  auto call = [=] { return answer<ssize_t>(system_call(SYS_read, file, word(buffer), word(size))); };
  return next_or(g_read, call, file, buffer, size);
}

}  // namespace

RH_WAIT ssize_t read(int file, void* buffer, size_t size) { return do_read(file, buffer, size); }

#if defined(__GLIBC__)
RH_WAIT ssize_t __read_chk(int file, void* buffer, size_t size, size_t room) {
  if (size > room) __chk_fail();
  return do_read(file, buffer, size);
}
#endif

RH_WAIT ssize_t readv(int file, const iovec* parts, int count) {
  size_t size = 0;
  for (int at = 0; at < count && size == 0; ++at) size = parts[at].iov_len;
  if (size != 0 && !await_input(file)) return -1;
  auto call = [=] { return answer<ssize_t>(system_call(SYS_readv, file, word(parts), count)); };
  return next_or(g_readv, call, file, parts, count);
}

#if defined(RH_SIX_ARGUMENTS)

namespace {

ssize_t kernel_recvfrom(int file, void* buffer, size_t size, int flags, sockaddr* from, socklen_t* length) {
  return answer<ssize_t>(system_call(SYS_recvfrom, file, word(buffer), word(size), flags, word(from), word(length)));
}

ssize_t do_recv(int file, void* buffer, size_t size, int flags) {
  if (!await_input(file, flags)) return -1;
  auto call = [=] { return kernel_recvfrom(file, buffer, size, flags, nullptr, nullptr); };
  return next_or(g_recv, call, file, buffer, size, flags);
}

ssize_t do_recvfrom(int file, void* buffer, size_t size, int flags, sockaddr* from, socklen_t* length) {
  if (!await_input(file, flags)) return -1;
  auto call = [=] { return kernel_recvfrom(file, buffer, size, flags, from, length); };
  return next_or(g_recvfrom, call, file, buffer, size, flags, from, length);
}

}  // namespace

RH_WAIT ssize_t recv(int file, void* buffer, size_t size, int flags) { return do_recv(file, buffer, size, flags); }

#if defined(__GLIBC__)
RH_WAIT ssize_t __recv_chk(int file, void* buffer, size_t size, size_t room, int flags) {
  if (size > room) __chk_fail();
  return do_recv(file, buffer, size, flags);
}
#endif

RH_WAIT ssize_t recvfrom(int file, void* buffer, size_t size, int flags, sockaddr* from, socklen_t* length) {
  return do_recvfrom(file, buffer, size, flags, from, length);
}

#if defined(__GLIBC__)
RH_WAIT ssize_t __recvfrom_chk(int file, void* buffer, size_t size, size_t room, int flags, sockaddr* from,
                               socklen_t* length) {
  if (size > room) __chk_fail();
  return do_recvfrom(file, buffer, size, flags, from, length);
}
#endif

#endif

RH_WAIT ssize_t recvmsg(int file, msghdr* message, int flags) {
  if (!await_input(file, flags)) return -1;
  auto call = [=] { return answer<ssize_t>(system_call(SYS_recvmsg, file, word(message), flags)); };
  return next_or(g_recvmsg, call, file, message, flags);
}

RH_WAIT int accept(int file, sockaddr* from, socklen_t* length) {
  if (!await_input(file)) return -1;
  auto call = [=] { return answer(system_call(SYS_accept4, file, word(from), word(length), 0)); };
  return next_or(g_accept, call, file, from, length);
}

RH_WAIT int accept4(int file, sockaddr* from, socklen_t* length, int flags) {
  if (!await_input(file)) return -1;
  auto call = [=] { return answer(system_call(SYS_accept4, file, word(from), word(length), flags)); };
  return next_or(g_accept4, call, file, from, length, flags);
}

RH_WAIT pid_t wait(int* status) {
  if (!await_child(-1, 0)) return -1;
  return next_or(g_wait, [=] { return kernel_wait(-1, status, 0, nullptr); }, status);
}

RH_WAIT pid_t waitpid(pid_t process, int* status, int options) {
  if (!await_child(process, options)) return -1;
  auto call = [=] { return kernel_wait(process, status, options, nullptr); };
  return next_or(g_waitpid, call, process, status, options);
}

RH_WAIT pid_t wait3(int* status, int options, rusage* usage) RH_C_NOEXCEPT {
  if (!await_child(-1, options)) return -1;
  auto call = [=] { return kernel_wait(-1, status, options, usage); };
  return next_or(g_wait3, call, status, options, usage);
}

RH_WAIT pid_t wait4(pid_t process, int* status, int options, rusage* usage) RH_C_NOEXCEPT {
  if (!await_child(process, options)) return -1;
  auto call = [=] { return kernel_wait(process, status, options, usage); };
  return next_or(g_wait4, call, process, status, options, usage);
}

RH_WAIT int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  if (!await_child(type, id, options)) return -1;
  auto call = [=] { return answer(system_call(SYS_waitid, type, static_cast<long>(id), word(info), options, 0)); };
  return next_or(g_waitid, call, type, id, info, options);
}

RH_WAIT int pause() {
  if (has_two_parts(nullptr)) return suspend(nullptr);
  return next_or(g_pause, [] { return answer(kernel_poll(nullptr, 0, nullptr, nullptr)); });
}

RH_WAIT int sigsuspend(const sigset_t* set) {
  if (has_two_parts(nullptr)) return suspend(of_kernel(set));
  auto call = [=] { return answer(kernel_poll(nullptr, 0, nullptr, of_kernel(set))); };
  return next_or(g_sigsuspend, call, set);
}

RH_WAIT int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* timeout) {
  if (has_two_parts(timeout)) return answer(take_signal_in_two_parts(set, info, timeout));
  auto call = [=] { return answer(kernel_take_signal(set, info, timeout)); };
  return next_or(g_sigtimedwait, call, set, info, timeout);
}

RH_WAIT int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  if (has_two_parts(nullptr)) return answer(take_signal_in_two_parts(set, info, nullptr));
  auto call = [=] { return answer(kernel_take_signal(set, info, nullptr)); };
  return next_or(g_sigwaitinfo, call, set, info);
}

// Gives an error's number. That a signal came which is not in the set is none.
RH_WAIT int sigwait(const sigset_t* set, int* signal) {
  auto taken = [signal](long result) {
    if (!platform::is_error(result)) *signal = static_cast<int>(result);
    return platform::is_error(result) ? static_cast<int>(-result) : 0;
  };
  if (has_two_parts(nullptr)) {
    long result = take_signal_in_two_parts(set, nullptr, nullptr);
    if (result != -EINTR) return taken(result);
  }
  auto call = [=] {
    long result = -EINTR;
    while (result == -EINTR) result = kernel_take_signal(set, nullptr, nullptr);
    return taken(result);
  };
  return next_or(g_sigwait, call, set, signal);
}
