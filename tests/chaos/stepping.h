// Interrupts a piece of code before each of its instructions: the processor's trap flag turns each one into a signal,
// so no moment is left to chance. Only the calling thread steps.
#pragma once

#include <sys/syscall.h>
#include <ucontext.h>

#include <csignal>
#include <cstdint>

namespace chaos {

#if defined(__x86_64__) || defined(__i386__)
constexpr bool kSteps = true;

namespace stepping {

inline constexpr greg_t kTrapFlag = 0x100;

struct State {
  int left = 0;
  bool done = false;  // the action has run
  void (*action)() = nullptr;
};
inline constinit thread_local State state;

// Where a system call's number and second argument are, and the two bytes of the instruction.
#if defined(__x86_64__)
constexpr int kNext = REG_RIP, kNumber = REG_RAX, kSet = REG_RSI, kStack = REG_RSP;
inline bool is_call(const unsigned char* next) { return next[0] == 0x0f && next[1] == 0x05; }
#else
constexpr int kNext = REG_EIP, kNumber = REG_EAX, kSet = REG_ECX, kStack = REG_ESP;
inline bool is_call(const unsigned char* next) {
  return (next[0] == 0xcd && next[1] == 0x80) || (next[0] == 0x0f && next[1] == 0x34);
}
#endif

// Blocking the trap's signal while it is due would end the process, so it must stay unblocked.
inline void keep_trap_open(const ucontext_t& context) {
  const greg_t* registers = context.uc_mcontext.gregs;
  const auto* next = reinterpret_cast<const unsigned char*>(registers[kNext]);
  if (!is_call(next) || registers[kNumber] != SYS_rt_sigprocmask) return;
  const auto set = static_cast<std::uintptr_t>(registers[kSet]);
  const auto stack = static_cast<std::uintptr_t>(registers[kStack]);
  // A constant set cannot be changed; the stepping then ends here.
  if (set - stack + 65536 < 2 * 65536)
    *reinterpret_cast<std::uint64_t*>(set) &= ~(std::uint64_t{1} << (SIGTRAP - 1));
  else if (set != 0)
    state.left = 0;
}

inline void on_trap(int, siginfo_t*, void* raw) {
  auto& context = *static_cast<ucontext_t*>(raw);
  keep_trap_open(context);
  if (--state.left > 0) return;
  // Where signals are blocked, no signal but the trap's, which is kept unblocked above, could arrive: the action waits
  // until they are unblocked.
  if (state.left == 0 && sigismember(&context.uc_sigmask, SIGUSR1) == 1) {
    state.left = 1;
    return;
  }
  context.uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
  if (state.left < 0) return;
  state.done = true;
  state.action();
}

inline void set_trap_flag() {
#if defined(__x86_64__)
  asm volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::
                   : "memory", "cc");
#else
  asm volatile("pushfl\n\torl $0x100, (%%esp)\n\tpopfl" ::: "memory", "cc");
#endif
}

inline void clear_trap_flag() {
#if defined(__x86_64__)
  asm volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\tandq $-257, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::
                   : "memory", "cc");
#else
  asm volatile("pushfl\n\tandl $-257, (%%esp)\n\tpopfl" ::: "memory", "cc");
#endif
}

}  // namespace stepping

// Runs `body`, and `action` as a signal handler before instruction number `step`, counted from 1. False when there are
// fewer.
template <class Body> bool interrupted_at(int step, void (*action)(), Body body) {
  struct sigaction trap{};
  trap.sa_sigaction = stepping::on_trap;
  trap.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &trap, nullptr);
  stepping::state = {step, false, action};
  stepping::set_trap_flag();
  body();
  stepping::clear_trap_flag();
  return stepping::state.done;
}

#else
constexpr bool kSteps = false;

template <class Body> bool interrupted_at(int, void (*)(), Body) { return false; }
#endif

}  // namespace chaos
