// Signals by which somebody asks the library for something.
#include <signal.h>

#include "platform/platform.h"

namespace rh::platform {

namespace {

constinit std::atomic<void (*)()> g_on_signal{nullptr};
constinit int g_signal = 0;  // that is listened for

void on_signal(int) { g_on_signal.load(std::memory_order_relaxed)(); }

}  // namespace

// Not those that say what is wrong with the program, that end it whatever it does, or that it hears of its children by.
bool may_listen(uint64_t number) {
  constexpr int kOthers[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGSEGV, SIGSTOP, SIGCONT, SIGCHLD};
  if (number == 0 || number >= static_cast<uint64_t>(NSIG)) return false;
  for (int other : kOthers)
    if (number == static_cast<uint64_t>(other)) return false;
#if defined(SIGRTMIN)
  // The C library keeps the first of the real-time signals for itself.
  return number < 32 || number >= static_cast<uint64_t>(SIGRTMIN);
#else
  return true;
#endif
}

bool listen(uint64_t number, void (*function)()) {
  const int signal = static_cast<int>(number);
  struct sigaction before = {}, action = {};
  if (sigaction(signal, nullptr, &before) != 0) return false;
  if ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) return false;
  g_on_signal.store(function, std::memory_order_relaxed);
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  if (sigaction(signal, &action, nullptr) != 0) return false;
  g_signal = signal;
  return true;
}

void stop_listening() {
  struct sigaction now = {};
  if (g_signal == 0 || sigaction(g_signal, nullptr, &now) != 0 || now.sa_handler != on_signal) return;
  now.sa_handler = SIG_DFL;
  sigaction(g_signal, &now, nullptr);
}

}  // namespace rh::platform
