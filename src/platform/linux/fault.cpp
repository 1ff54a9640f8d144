// Accesses to memory that the kernel refuses, seen before whatever else handles them.
#include <signal.h>
#include <ucontext.h>

#include "platform/platform.h"

namespace rh::platform {

namespace {

constinit LookAtFault* g_look = nullptr;
constinit struct sigaction g_before = {};

Access access_of([[maybe_unused]] const void* context) {
#if defined(__x86_64__) || defined(__i386__)
  constexpr long kWrite = 2;  // of the page fault's error code
  long code = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR];
  return (code & kWrite) != 0 ? Access::write : Access::read;
#else
  return Access::unknown;
#endif
}

bool is_function(void (*handler)(int)) { return handler != SIG_DFL && handler != SIG_IGN; }

// What was there before has its turn. Where there was nothing the access is made again, and ends the process as it
// would have: a signal that a fault raises cannot be ignored.
void pass_on(int signal, siginfo_t* information, void* context) {
  if ((g_before.sa_flags & SA_SIGINFO) != 0) return g_before.sa_sigaction(signal, information, context);
  if (is_function(g_before.sa_handler)) return g_before.sa_handler(signal);
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
  // First what was there: the handler may be wanted at once.
  sigaction(SIGSEGV, nullptr, &g_before);
  sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace rh::platform
