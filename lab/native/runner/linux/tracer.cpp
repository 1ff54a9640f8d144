#include "runner/linux/tracer.h"

#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runner/failure.h"
#include "runner/linux/clock.h"

namespace runner {

namespace {

constexpr int kFollow = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;

bool is_stop_of_group(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

unsigned long message_of(pid_t thread) {
  unsigned long message = 0;
  ptrace(PTRACE_GETEVENTMSG, thread, nullptr, &message);
  return message;
}

std::uint64_t instruction_of(pid_t thread) {
  user_regs_struct registers{};
  iovec place{&registers, sizeof registers};
  if (ptrace(PTRACE_GETREGSET, thread, NT_PRSTATUS, &place) != 0) return 0;
#if defined(__x86_64__)
  return registers.rip;
#elif defined(__i386__)
  return static_cast<std::uint32_t>(registers.eip);
#else
  return registers.pc;
#endif
}

}  // namespace

pid_t process_of(pid_t thread) {
  char text[4096];
  int process = thread;
  if (ProcFile(thread, "status").read(text, sizeof text) > 0)
    if (const char* line = std::strstr(text, "\nTgid:")) std::sscanf(line, "\nTgid: %d", &process);
  return process;
}

Tracer::Tracer(pid_t command, const char* purpose, int more) {
  if (ptrace(PTRACE_SEIZE, command, nullptr, kFollow | more) == 0) return;
  throw Failure(kOwnFault, std::string(purpose) + " needs ptrace, and the system says: " + std::strerror(errno) +
                               ". In a container give it the capability SYS_PTRACE; elsewhere look at the "
                               "setting kernel.yama.ptrace_scope");
}

void Tracer::stopped(pid_t thread, int status) {
  const int signal = WSTOPSIG(status);
  long passed_on = 0;
  auto resume = PTRACE_CONT;
  switch (status >> 16) {
  case PTRACE_EVENT_SECCOMP: called(message_of(thread)); break;
  case PTRACE_EVENT_FORK:
  case PTRACE_EVENT_VFORK:
  case PTRACE_EVENT_CLONE: born(static_cast<pid_t>(message_of(thread)), thread); break;
  case PTRACE_EVENT_EXEC: replaced(thread); break;
  case PTRACE_EVENT_EXIT: leaving(thread); break;
  case PTRACE_EVENT_STOP:
    if (is_stop_of_group(signal))
      resume = PTRACE_LISTEN;
    else
      interrupted(thread);
    break;
  default: passed_on = signal;
  }
  ptrace(resume, thread, nullptr, passed_on);
}

// ---- a profile by stopping threads ----------------------------------------------------------------

Stopper::Stopper(pid_t command, int hz) : Tracer(command, "--profile", 0), hz_(hz) {
  threads_.try_emplace(command, command);
}

std::int64_t Stopper::interval_ns() const { return kSecond / hz_; }

void Stopper::tick() {
  for (auto& [id, thread] : threads_) {
    const std::int64_t due = (thread.used_ns() - thread.accounted_ns) / interval_ns();
    if (due <= 0 || ptrace(PTRACE_INTERRUPT, id, nullptr, nullptr) != 0) continue;
    thread.accounted_ns += due * interval_ns();
    thread.due += due;
  }
}

Stopper::Thread::Thread(pid_t id) : process(process_of(id)), times(id, "schedstat"), accounted_ns(used_ns()) {}

std::int64_t Stopper::Thread::used_ns() const {
  char text[128];
  return times.read(text, sizeof text) > 0 ? std::strtoll(text, nullptr, 10) : 0;
}

void Stopper::born(pid_t thread, pid_t) { threads_.try_emplace(thread, thread); }

// The thread that did it is now the only one, and goes by the number of the process.
void Stopper::replaced(pid_t process) {
  modules_.forget(process);
  threads_.erase(process);
  threads_.try_emplace(process, process);
}

void Stopper::interrupted(pid_t thread) {
  const auto found = threads_.find(thread);
  if (found == threads_.end() || found->second.due == 0) return;
  modules_.count(found->second.process, instruction_of(thread), found->second.due);
  found->second.due = 0;
}

}  // namespace runner
