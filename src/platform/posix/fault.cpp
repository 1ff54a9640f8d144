// Accesses to memory that the kernel refuses, seen before whatever else handles them.
#include <signal.h>
#if defined(__APPLE__)
#include <sys/ucontext.h>
#else
#include <ucontext.h>
#endif

#include "platform/platform.h"

namespace rh::platform {

namespace {

// What is told of memory that is there and may not be accessed; Darwin keeps SIGSEGV for where nothing is.
#if defined(__APPLE__)
constexpr int kSignals[] = {SIGBUS, SIGSEGV};
#else
constexpr int kSignals[] = {SIGSEGV};
#endif
constexpr size_t kCount = sizeof(kSignals) / sizeof(kSignals[0]);

constinit LookAtFault* g_look = nullptr;
constinit struct sigaction g_before[kCount] = {};

Access access_of([[maybe_unused]] const void* context) {
#if defined(__x86_64__) || defined(__i386__)
  constexpr long kWrite = 2;  // of the page fault's error code
#if defined(__APPLE__)
  long code = static_cast<const ucontext_t*>(context)->uc_mcontext->__es.__err;
#else
  long code = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR];
#endif
  return (code & kWrite) != 0 ? Access::write : Access::read;
#else
  return Access::unknown;
#endif
}

const struct sigaction& before(int signal) { return g_before[signal == kSignals[0] ? 0 : kCount - 1]; }

bool is_function(void (*handler)(int)) { return handler != SIG_DFL && handler != SIG_IGN; }

// What was there before has its turn. Where there was nothing the access is made again, and ends the process as it
// would have: a signal that a fault raises cannot be ignored.
void pass_on(int signal, siginfo_t* information, void* context) {
  if ((before(signal).sa_flags & SA_SIGINFO) != 0) return before(signal).sa_sigaction(signal, information, context);
  if (is_function(before(signal).sa_handler)) return before(signal).sa_handler(signal);
  struct sigaction none = {};
  none.sa_handler = SIG_DFL;
  sigaction(signal, &none, nullptr);
}

void handle(int signal, siginfo_t* information, void* context) {
  // Others send the signal too, and then no address with it.
  if (information->si_code > 0) g_look(reinterpret_cast<uintptr_t>(information->si_addr), access_of(context));
  pass_on(signal, information, context);
}

}  // namespace

void on_fault(LookAtFault* look) {
  g_look = look;
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (size_t at = 0; at < kCount; ++at) {
    // First what was there: the handler may be wanted at once.
    sigaction(kSignals[at], nullptr, &g_before[at]);
    sigaction(kSignals[at], &action, nullptr);
  }
}

// Who came later may have kept the handler to call it, as this does: then it cannot be taken away.
void forget_faults() {
  if (g_look == nullptr) return;
  for (size_t at = 0; at < kCount; ++at) {
    struct sigaction now = {};
    sigaction(kSignals[at], nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == handle) sigaction(kSignals[at], &g_before[at], nullptr);
  }
}

}  // namespace rh::platform
