// A kernel that knows no guards (before Linux 6.13), from the process's start on.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include "held.h"

using namespace chaos;

namespace {

constexpr char kFiltered[] = "CHAOS_WITHOUT_GUARDS";

// MADV_GUARD_INSTALL and MADV_GUARD_REMOVE give EINVAL.
bool refuse_guards() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 102, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 103, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(code), code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

void work() {
  Random random(7);
  Held held[64];
  void* empty[64] = {};
  for (int step = 0; step < times(20000); ++step) {
    const std::size_t at = random.below(std::size(held));
    if (held[at]) {
      held[at].drop();
      free(empty[at]);
    } else {
      held[at].take(random.below(50) == 0 ? random.size(4 * MiB) : random.size(64 * KiB), random.next());
      empty[at] = malloc(0);
    }
  }
  for (std::size_t at = 0; at < std::size(held); ++at) {
    if (!held[at]) continue;
    held[at].drop();
    free(empty[at]);
  }
}

SCENARIO(kernel_without_guards) {
  if (getenv(kFiltered) != nullptr) {
    work();
    return 0;
  }
  if (!refuse_guards()) return kSkipped;
  setenv(kFiltered, "1", 1);
  char name[] = "chaos_attack", scenario[] = "kernel_without_guards";
  char* words[] = {name, scenario, nullptr};
  execv("/proc/self/exe", words);
  return 1;
}

}  // namespace
