// A sandbox that refuses one call of the system from some moment on, whichever it is: then there is memory or NULL, and
// what lies in the blocks is what was written there.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <thread>

#include "held.h"
#include "reheap/reheap.h"
#include "support/library.h"

using namespace chaos;

namespace {

struct Call {
  const char* name;
  long number;
};

// All that the library asks of the system, and what it may ask one day.
constexpr Call kCalls[] = {
    {"mmap", SYS_mmap},
    {"munmap", SYS_munmap},
    {"mremap", SYS_mremap},
    {"mprotect", SYS_mprotect},
    {"madvise", SYS_madvise},
    {"futex", SYS_futex},
    {"clone", SYS_clone},
    {"getrandom", SYS_getrandom},
    {"gettid", SYS_gettid},
    {"getpid", SYS_getpid},
    {"get_robust_list", SYS_get_robust_list},
    {"sched_yield", SYS_sched_yield},
    {"nanosleep", SYS_nanosleep},
    {"clock_gettime", SYS_clock_gettime},
    {"getcpu", SYS_getcpu},
    {"openat", SYS_openat},
    {"read", SYS_read},
    {"close", SYS_close},
    {"write", SYS_write},
    {"sysinfo", SYS_sysinfo},
    {"capset", SYS_capset},
    {"prctl", SYS_prctl},
    {"rt_sigprocmask", SYS_rt_sigprocmask},
    {"rt_sigaction", SYS_rt_sigaction},
    {"process_vm_readv", SYS_process_vm_readv},
    {"sched_getaffinity", SYS_sched_getaffinity},
    {"membarrier", SYS_membarrier},
};

enum class Filter {
  announced,  // by prctl, which the library hears of
  unheard,    // by an instruction of the program's own
};

long ask_kernel(long number, long a, long b, long c) {
#if defined(__x86_64__)
  long result;
  register long none asm("r10") = 0, none_either asm("r8") = 0;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(none), "r"(none_either)
               : "rcx", "r11", "memory");
  return result;
#else
  return syscall(number, a, b, c, 0L, 0L);
#endif
}

// In all threads.
void refuse(long call, int error, Filter filter) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof code / sizeof code[0], code};
  if (filter == Filter::announced) {
    NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    NEED(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0, "errno %d", errno);
    return;
  }
  NEED(ask_kernel(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0) == 0);
  NEED(ask_kernel(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, reinterpret_cast<long>(&program)) ==
       0);
}

// ---- what is done with memory that may be refused ------------------------------------------------

void take_zeroed(std::size_t size) {
  auto* block = static_cast<unsigned char*>(calloc(1, size));
  if (!block) return;
  for (std::size_t at = 0; at < size; at += 512) NEED(block[at] == 0, "byte %zu of %zu", at, size);
  std::memset(block, 0xdb, size);
  free(block);
}

void use_what_there_is(std::uint64_t seed) {
  Random random(seed);
  Held own[48];
  for (int round = 0; round < 150; ++round) {
    Held& held = own[random.below(48)];
    const std::size_t size = random.size(round % 5 == 0 ? 3 * MiB : 20 * KiB);
    switch (random.below(4)) {
    case 0: take_zeroed(size); break;
    case 1: held ? void(held.resize(size)) : held.take(size, random.next()); break;
    default: held.drop(), held.take(size, random.next());
    }
  }
  for (Held& held : own) held.drop();
}

std::atomic<int> g_stage{0};  // 1: the filter is there; 2: the other thread is done

void use_in_another_thread() {
  use_heap(5);
  while (g_stage != 1) sched_yield();
  for (std::uint64_t round = 0; round < 3; ++round) use_what_there_is(round);
  g_stage = 2;
  // It is never joined: that waits by a call that may be refused.
  for (;;) pause();
}

// One block in five on pages of its own, which are made accessible and inaccessible again and again. The hardened build
// refuses.
void put_blocks_on_guarded_pages() {
  if (auto* set = CONTRACT_FIND(rh_option_set)) set("sample_guard", "5");
}

void use_under_refusal(const Call& call, int error, Filter filter) {
  Held before[32];
  Random random(static_cast<std::uint64_t>(call.number * 7 + error));
  for (Held& held : before) held.take(random.size(2 * MiB), random.next());
  std::thread(use_in_another_thread).detach();
  free_much(4 * MiB);
  memory_is_scarce = true;
  refuse(call.number, error, filter);
  g_stage = 1;
  for (int round = 0; round < 4; ++round) use_what_there_is(random.next());
  for (Held& held : before)
    if (random.one_in(2)) held.resize(random.size(4 * MiB));
  free_much(4 * MiB);
  for (Held& held : before) held.drop();
  for (int wait = 0; g_stage != 2 && wait < 20'000'000; ++wait) sched_yield();
  NEED(g_stage == 2, "the other thread");
}

SCENARIO(one_call_refused_from_some_moment_on) {
  for (const Filter filter : {Filter::announced, Filter::unheard}) {
    if (filter == Filter::unheard) put_blocks_on_guarded_pages();
    for (const Call& call : kCalls) {
      for (const int error : {EPERM, ENOSYS}) {
        const pid_t child = fork();
        if (child == 0) {
          use_under_refusal(call, error, filter);
          _exit(0);
        }
        NEED(ended_well(child), "%s refused with %d (%s)", call.name, error,
             filter == Filter::announced ? "announced" : "unheard");
      }
    }
  }
  return 0;
}

}  // namespace
