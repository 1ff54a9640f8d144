#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <cstddef>
#include <iterator>

#include "runner/linux/call_counter.h"

namespace runner {

namespace {

struct Call {
  const char* name;
  long number;
};

constexpr Call kCalls[] = {
    {"mmap", SYS_mmap},       {"munmap", SYS_munmap},     {"mremap", SYS_mremap},
    {"madvise", SYS_madvise}, {"mprotect", SYS_mprotect}, {"brk", SYS_brk},
};
constexpr std::size_t kCount = std::size(kCalls);
constexpr std::uint32_t kForeign = kCount;  // what the filter says of a call whose numbers are not ours

#if defined(__x86_64__)
constexpr std::uint32_t kProcessor = AUDIT_ARCH_X86_64;
#elif defined(__i386__)
constexpr std::uint32_t kProcessor = AUDIT_ARCH_I386;
#elif defined(__aarch64__)
constexpr std::uint32_t kProcessor = AUDIT_ARCH_AARCH64;
#elif defined(__riscv)
constexpr std::uint32_t kProcessor = AUDIT_ARCH_RISCV64;
#else
constexpr std::uint32_t kProcessor = 0;  // every call is foreign
#endif

sock_filter load(std::size_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)); }

sock_filter skip_next_if_not(std::uint32_t value) { return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1); }

sock_filter skip_next_if(std::uint32_t value) { return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0); }

sock_filter tell(std::uint32_t kind) { return BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | kind); }

}  // namespace

CallCounter::CallCounter(pid_t command)
    : Accountant(command, "--count-calls", PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL), counts_(kCount) {}

bool CallCounter::install_filter() {
  sock_filter filter[5 + 2 * kCount];
  unsigned short at = 0;
  filter[at++] = load(offsetof(seccomp_data, arch));
  filter[at++] = skip_next_if(kProcessor);
  filter[at++] = tell(kForeign);
  filter[at++] = load(offsetof(seccomp_data, nr));
  for (std::uint32_t kind = 0; kind < kCount; kind++) {
    filter[at++] = skip_next_if_not(static_cast<std::uint32_t>(kCalls[kind].number));
    filter[at++] = tell(kind);
  }
  filter[at++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog program{at, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

void CallCounter::called(unsigned long kind) {
  if (kind < kCount)
    counts_[kind]++;
  else
    foreign_ = true;
}

std::vector<std::pair<std::string, std::int64_t>> CallCounter::counts() const {
  std::vector<std::pair<std::string, std::int64_t>> named;
  for (std::size_t kind = 0; kind < kCount && !foreign_; kind++) named.emplace_back(kCalls[kind].name, counts_[kind]);
  return named;
}

}  // namespace runner
