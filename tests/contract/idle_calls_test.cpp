// A single-threaded program that sleeps in a call without a time limit: what it freed is returned while it sleeps, and
// the call behaves as before. These promises are reheap's own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <vector>

#include "idle.h"
#include "support/library.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

// What compilers call where they know the size of the buffer.
extern "C" {
ssize_t __read_chk(int file, void* buffer, size_t size, size_t room);
ssize_t __recv_chk(int file, void* buffer, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int file, void* buffer, size_t size, size_t room, int flags, sockaddr* from, socklen_t* length);
int __poll_chk(pollfd* files, nfds_t count, int timeout, size_t room);
int __ppoll_chk(pollfd* files, nfds_t count, const timespec* timeout, const sigset_t* set, size_t room);
}

namespace {

// What the sleeper sleeps on, and what wakes it.
struct Ends {
  int pipe_ends[2];
  int sockets[2];
  int listener;
  sockaddr_un address;
  socklen_t length;

  Ends() {
    NEED(pipe2(pipe_ends, O_CLOEXEC) == 0);
    NEED(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address = {AF_UNIX, {}};
    NEED(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t)) == 0);
    NEED(listen(listener, 1) == 0);
    length = sizeof address;
    NEED(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  }
  ~Ends() {
    for (const int file : {pipe_ends[0], pipe_ends[1], sockets[0], sockets[1], listener}) close(file);
  }
  void send_byte() const {
    NEED(write(pipe_ends[1], "x", 1) == 1);
    NEED(write(sockets[1], "x", 1) == 1);
  }
  void connect_once() const {
    const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    NEED(connect(client, reinterpret_cast<const sockaddr*>(&address), length) == 0);
    close(client);
  }
};

enum class Wakes { byte, connection, handled, taken };

struct Call {
  const char* name;
  Wakes wakes;
  bool waits_for_child;
  bool (*sleep)(const Ends& ends);  // true when it ended as it should
};

char byte = 0;

sigset_t only(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  return set;
}

sigset_t none() {
  sigset_t set;
  sigemptyset(&set);
  return set;
}

timespec time_after(time_t duration) {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  time.tv_sec += duration;
  return time;
}

bool interrupted(int result) { return result == -1 && errno == EINTR; }

const Call kCalls[] = {
    {"read", Wakes::byte, false, [](const Ends& e) { return read(e.pipe_ends[0], &byte, 1) == 1; }},
    {"read of a socket", Wakes::byte, false, [](const Ends& e) { return read(e.sockets[0], &byte, 1) == 1; }},
    {"__read_chk", Wakes::byte, false, [](const Ends& e) { return __read_chk(e.pipe_ends[0], &byte, 1, 1) == 1; }},
    {"readv", Wakes::byte, false,
     [](const Ends& e) {
       const iovec parts[] = {{&byte, 0}, {&byte, 1}};
       return readv(e.pipe_ends[0], parts, 2) == 1;
     }},
#if !defined(__i386__)
    {"recv", Wakes::byte, false, [](const Ends& e) { return recv(e.sockets[0], &byte, 1, 0) == 1; }},
    {"__recv_chk", Wakes::byte, false, [](const Ends& e) { return __recv_chk(e.sockets[0], &byte, 1, 1, 0) == 1; }},
    {"recvfrom", Wakes::byte, false,
     [](const Ends& e) { return recvfrom(e.sockets[0], &byte, 1, 0, nullptr, nullptr) == 1; }},
    {"__recvfrom_chk", Wakes::byte, false,
     [](const Ends& e) { return __recvfrom_chk(e.sockets[0], &byte, 1, 1, MSG_PEEK, nullptr, nullptr) == 1; }},
#endif
    {"recvmsg", Wakes::byte, false,
     [](const Ends& e) {
       iovec part = {&byte, 1};
       msghdr message{};
       message.msg_iov = &part;
       message.msg_iovlen = 1;
       return recvmsg(e.sockets[0], &message, 0) == 1;
     }},
    {"accept", Wakes::connection, false, [](const Ends& e) { return accept(e.listener, nullptr, nullptr) >= 0; }},
    {"accept4", Wakes::connection, false,
     [](const Ends& e) { return accept4(e.listener, nullptr, nullptr, SOCK_CLOEXEC) >= 0; }},
    {"__poll_chk", Wakes::byte, false,
     [](const Ends& e) {
       pollfd file{e.pipe_ends[0], POLLIN, 0};
       return __poll_chk(&file, 1, -1, sizeof file) == 1;
     }},
    {"__ppoll_chk", Wakes::byte, false,
     [](const Ends& e) {
       pollfd file{e.pipe_ends[0], POLLIN, 0};
       return __ppoll_chk(&file, 1, nullptr, nullptr, sizeof file) == 1;
     }},
    {"wait", Wakes::byte, true, [](const Ends&) { return wait(nullptr) > 0; }},
    {"waitpid", Wakes::byte, true, [](const Ends&) { return waitpid(0, nullptr, 0) > 0; }},
    {"wait3", Wakes::byte, true,
     [](const Ends&) {
       rusage usage;
       return wait3(nullptr, 0, &usage) > 0;
     }},
    {"wait4", Wakes::byte, true, [](const Ends&) { return wait4(-getpgrp(), nullptr, WUNTRACED, nullptr) > 0; }},
    {"waitid", Wakes::byte, true,
     [](const Ends&) {
       siginfo_t info{};
       return waitid(P_ALL, 0, &info, WEXITED) == 0 && info.si_pid > 0;
     }},
    {"pause", Wakes::handled, false, [](const Ends&) { return interrupted(pause()); }},
    {"sigsuspend", Wakes::handled, false,
     [](const Ends&) {
       const sigset_t set = none();
       return interrupted(sigsuspend(&set));
     }},
    {"clock_nanosleep until a time", Wakes::handled, false,
     [](const Ends&) {
       const timespec end = time_after(60);
       return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) == EINTR;
     }},
    {"sigwait", Wakes::taken, false,
     [](const Ends&) {
       const sigset_t set = only(SIGUSR2);
       int signal = 0;
       return sigwait(&set, &signal) == 0 && signal == SIGUSR2;
     }},
    {"sigwaitinfo", Wakes::taken, false,
     [](const Ends&) {
       const sigset_t set = only(SIGUSR2);
       siginfo_t info;
       return sigwaitinfo(&set, &info) == SIGUSR2 && info.si_pid == getppid();
     }},
    {"sigtimedwait", Wakes::taken, false,
     [](const Ends&) {
       const sigset_t set = only(SIGUSR2);
       const timespec long_time = {60, 0};
       return sigtimedwait(&set, nullptr, &long_time) == SIGUSR2;
     }},
};

std::size_t resident_of(pid_t process) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/statm", process);
  FILE* file = std::fopen(path, "r");
  unsigned long whole = 0;
  unsigned long pages = 0;
  NEED(file && std::fscanf(file, "%lu %lu", &whole, &pages) == 2, "%s", path);
  std::fclose(file);
  return pages * 4096;
}

constexpr std::size_t kFreed = 12 * MiB;

void free_some() {
  void* blocks[kFreed / (64 * KiB)];
  for (void*& block : blocks) block = std::memset(malloc(64 * KiB), 1, 64 * KiB);
  for (void* block : blocks) free(block);
}

// Slabs with a block in use each: more than give back their free pages before a waiting thread looks up.
void leave_sparse() {
  constexpr std::size_t kSize = 256, kBlocks = 16 * MiB / kSize, kOfUnit = 16 * KiB / kSize;
  std::vector<void*> blocks(kBlocks);
  for (void*& block : blocks) block = std::memset(malloc(kSize), 1, kSize);
  for (std::size_t at = 0; at < kBlocks; ++at)
    if (at % kOfUnit != 0) free(blocks[at]);
}

// In the child: reports what it held before, and how much with everything allocated.
[[noreturn]] void sleep_in(const Call& call, const Ends& ends, int report) {
  setpgid(0, 0);
  const sigset_t blocked = only(SIGUSR2);
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
  signal(SIGUSR1, [](int) {});
  if (call.waits_for_child && fork() == 0) {
    const bool woken = read(ends.pipe_ends[0], &byte, 1) == 1;
    _exit(woken ? 0 : 1);
  }
  leave_sparse();
  std::size_t held[2] = {resident(), 0};
  free_some();
  held[1] = resident();
  NEED(write(report, held, sizeof held) == sizeof held);
  NEED(call.sleep(ends), "%s, errno %d", call.name, errno);
  _exit(0);
}

SCENARIO(returned_in_endless_calls) {
  constexpr std::size_t kCount = std::size(kCalls);
  static Ends ends[kCount];
  pid_t sleepers[kCount];
  std::size_t before[kCount];
  for (std::size_t at = 0; at < kCount; ++at) {
    int report[2];
    NEED(pipe2(report, O_CLOEXEC) == 0);
    sleepers[at] = fork();
    if (sleepers[at] == 0) sleep_in(kCalls[at], ends[at], report[1]);
    std::size_t held[2];
    NEED(read(report[0], held, sizeof held) == sizeof held);
    // The hardened build returns such blocks as they are freed.
    NEED(is_hardened() || held[1] > held[0] + kFreed / 2, "%s: nothing was held", kCalls[at].name);
    before[at] = held[0];
    close(report[0]);
    close(report[1]);
  }
  for (std::size_t at = 0; at < kCount; ++at) {
    const auto is_back = [&] { return resident_of(sleepers[at]) < before[at] + kFreed / 4; };
    NEED(eventually(patience(kAllowed), is_back), "%s: %zu MiB stay", kCalls[at].name,
         (resident_of(sleepers[at]) - before[at]) / MiB);
    if (kCalls[at].wakes == Wakes::byte) ends[at].send_byte();
    if (kCalls[at].wakes == Wakes::connection) ends[at].connect_once();
    if (kCalls[at].wakes == Wakes::handled) kill(sleepers[at], SIGUSR1);
    if (kCalls[at].wakes == Wakes::taken) kill(sleepers[at], SIGUSR2);
    NEED(await(sleepers[at], 20) == 0, "%s", kCalls[at].name);
  }
  return 0;
}

// ---- side effects of such a call -----------------------------------------------------------------

volatile sig_atomic_t handled = 0;

void handle(int signal, int flags) {
  struct sigaction action{};
  action.sa_handler = [](int) { handled = handled + 1; };
  action.sa_flags = flags;
  NEED(sigaction(signal, &action, nullptr) == 0);
}

// A child that performs the given steps on its parent, one after another.
template <class Steps> pid_t beside(Steps steps) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    steps(parent);
    _exit(0);
  }
  return child;
}

// Signals arrive while memory is still held, and when it is gone; handlers with SA_RESTART let the call continue.
SCENARIO(signals_end_endless_calls_as_before) {
  handle(SIGUSR1, SA_RESTART);
  handle(SIGUSR2, 0);
  for (const double later : {0.1, 0.8}) {
    const Ends ends;
    handled = 0;
    free_some();
    const pid_t child = beside([&](pid_t parent) {
      nap(later);
      kill(parent, SIGUSR1);
      kill(parent, SIGCONT);
      kill(parent, SIGWINCH);
      nap(0.1);
      kill(parent, SIGUSR2);
      nap(0.1);
      ends.send_byte();
    });
    NEED(interrupted(static_cast<int>(read(ends.pipe_ends[0], &byte, 1))), "errno %d", errno);
    NEED(handled == 2, "%d handled", static_cast<int>(handled));
    NEED(read(ends.pipe_ends[0], &byte, 1) == 1);
    NEED(await(child, 20) == 0);
  }
  return 0;
}

SCENARIO(signals_while_memory_goes_back) {
  const Ends ends;
  handle(SIGALRM, SA_RESTART);
  leave_sparse();
  const std::size_t before = resident();
  free_some();
  const pid_t child = beside([&](pid_t parent) {
    const bool back = eventually(patience(kAllowed), [&] { return resident_of(parent) < before - 4 * MiB; });
    ends.send_byte();
    _exit(back ? 0 : 1);
  });
  const itimerval often = {{0, 1000}, {0, 1000}};
  NEED(setitimer(ITIMER_REAL, &often, nullptr) == 0);
  NEED(read(ends.pipe_ends[0], &byte, 1) == 1 && handled != 0, "errno %d", errno);
  const itimerval never = {};
  NEED(setitimer(ITIMER_REAL, &never, nullptr) == 0);
  NEED(await(child, 20) == 0, "%zu of %zu MiB stay", resident() / MiB, before / MiB);
  return 0;
}

SCENARIO(signals_end_waits_for_children_as_before) {
  handle(SIGUSR1, SA_RESTART);
  handle(SIGUSR2, 0);
  handled = 0;
  free_some();
  const pid_t child = beside([](pid_t parent) {
    nap(0.1);
    kill(parent, SIGUSR1);
    nap(0.1);
    kill(parent, SIGUSR2);
    nap(0.1);
  });
  NEED(interrupted(waitpid(child, nullptr, 0)), "errno %d", errno);
  NEED(handled == 2, "%d handled", static_cast<int>(handled));
  int status = -1;
  NEED(waitpid(child, &status, 0) == child && status == 0);
  NEED(waitpid(child, &status, 0) == -1 && errno == ECHILD);
  // The SIGCHLD handler does not take the child away from the call.
  handle(SIGCHLD, 0);
  free_some();
  const pid_t second = beside([](pid_t) { nap(0.1); });
  NEED(waitpid(second, &status, 0) == second && status == 0 && handled == 3);
  return 0;
}

// A program that waits for SIGCHLD with a signal set has it blocked.
SCENARIO(waits_with_the_childs_signal_blocked) {
  const sigset_t blocked = only(SIGCHLD);
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
  for (int round = 0; round < 2; ++round) {
    free_some();
    const pid_t child = beside([](pid_t) { nap(0.1); });
    int status = -1;
    NEED(waitpid(child, &status, 0) == child && status == 0);
  }
  NEED(sigwaitinfo(&blocked, nullptr) == SIGCHLD);
  return 0;
}

SCENARIO(other_signals_end_sigwaitinfo) {
  handle(SIGUSR1, SA_RESTART);
  const sigset_t blocked = only(SIGUSR2);
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
  for (const double later : {0.1, 0.8}) {
    free_some();
    const pid_t child = beside([later](pid_t parent) {
      nap(later);
      kill(parent, SIGUSR1);
      nap(0.1);
      kill(parent, SIGUSR2);
    });
    NEED(interrupted(sigwaitinfo(&blocked, nullptr)), "errno %d", errno);
    NEED(sigwaitinfo(&blocked, nullptr) == SIGUSR2);
    NEED(await(child, 20) == 0);
  }
  return 0;
}

sigjmp_buf out;

void jump_out_of_read(const Ends& ends, long microseconds) {
  signal(SIGALRM, [](int) { siglongjmp(out, 1); });
  if (sigsetjmp(out, 1) != 0) return;
  const itimerval once = {{0, 0}, {0, microseconds}};
  setitimer(ITIMER_REAL, &once, nullptr);
  NEED(read(ends.pipe_ends[0], &byte, 1) == 0, "it came back");
}

SCENARIO(handlers_jump_out_of_endless_calls) {
  const Ends ends;
  const int next = dup(0);
  close(next);
  for (const long microseconds : {100000, 50000, 700000}) {
    free_some();
    jump_out_of_read(ends, microseconds);
    sigset_t now;
    sigprocmask(SIG_BLOCK, nullptr, &now);
    NEED(!sigismember(&now, SIGTERM) && !sigismember(&now, SIGALRM));
  }
  NEED(dup(0) == next, "descriptors were left open");
  return 0;
}

// ---- a program that is stopped meanwhile ---------------------------------------------------------

constexpr time_t kSlept = 2;

// Each for so many seconds, of which it is stopped more than half a second, memory having gone back.
constexpr void (*kSleeps[])() = {
    [] { sleep(kSlept); },
    [] { usleep(kSlept * 1000000); },
    [] {
      const timespec time = {kSlept, 0};
      nanosleep(&time, nullptr);
    },
    [] {
      const timespec end = time_after(kSlept);
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr);
    },
#if defined(SYS_poll)  // else the kernel has no call that is resumed so
    [] { poll(nullptr, 0, kSlept * 1000); },
#endif
};

SCENARIO(stopped_sleeps_end_in_time) {
  int report[2];
  NEED(pipe2(report, O_CLOEXEC) == 0);
  pid_t sleepers[std::size(kSleeps)];
  for (std::size_t at = 0; at < std::size(kSleeps); ++at) {
    sleepers[at] = fork();
    if (sleepers[at] != 0) continue;
    free_some();
    const double begun = seconds();
    kSleeps[at]();
    const double end = seconds();
    _exit(end - begun > kSlept - 0.01 && write(report[1], &end, sizeof end) == sizeof end ? 0 : 1);
  }
  const double start = seconds();
  nap(0.7);
  for (const pid_t sleeper : sleepers) kill(sleeper, SIGSTOP);
  nap(1.2);
  for (const pid_t sleeper : sleepers) kill(sleeper, SIGCONT);
  const double should_end = std::max(seconds(), start + kSlept);
  for (const pid_t sleeper : sleepers) {
    double end;
    NEED(await(sleeper, 20) == 0 && read(report[0], &end, sizeof end) == sizeof end);
    NEED(end < should_end + patience(0.8), "%.2f s instead of %.2f", end - start, should_end - start);
  }
  return 0;
}

// Calls that would not wait do not wait.
SCENARIO(who_does_not_wait_is_not_kept) {
  const Ends ends;
  const double start = seconds();
  for (int round = 0; round < 30; ++round) {
    free_some();
    NEED(read(ends.pipe_ends[0], &byte, 0) == 0);
    NEED(read(ends.pipe_ends[1], &byte, 1) == -1 && errno == EBADF);
    NEED(recv(ends.sockets[0], &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    NEED(wait(nullptr) == -1 && errno == ECHILD);
    NEED(waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD);
    const timespec soon = {0, 1000000};
    const sigset_t set = only(SIGUSR2);
    NEED(sigtimedwait(&set, nullptr, &soon) == -1 && errno == EAGAIN);
  }
  const timeval limit = {0, 1000};
  setsockopt(ends.sockets[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  fcntl(ends.pipe_ends[0], F_SETFL, O_NONBLOCK);
  for (int round = 0; round < 30; ++round) {
    NEED(read(ends.sockets[0], &byte, 1) == -1 && errno == EAGAIN);
    NEED(read(ends.pipe_ends[0], &byte, 1) == -1 && errno == EAGAIN);
  }
  NEED(seconds() - start < patience(6), "%.1f s", seconds() - start);
  return 0;
}

TEST(Idle, MemoryGoesBackInEndlessCalls) { expect_scenarios({"returned_in_endless_calls"}); }

TEST(Idle, EndlessCallsDoWhatTheyDid) {
  expect_scenarios({"signals_end_endless_calls_as_before", "signals_while_memory_goes_back",
                    "signals_end_waits_for_children_as_before", "waits_with_the_childs_signal_blocked",
                    "other_signals_end_sigwaitinfo", "handlers_jump_out_of_endless_calls",
                    "who_does_not_wait_is_not_kept", "stopped_sleeps_end_in_time"});
}

}  // namespace
