// Whatever returns memory in the background keeps no privileges and blocks nothing that the program does.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

#include "held.h"

// prctl, as 32-bit programs that are compiled with _TIME_BITS=64 call it; glibc has it since 2.34, on 32-bit alone.
extern "C" [[gnu::weak]] int __prctl_time64(int option, ...);

using namespace chaos;

namespace {

// ---- credentials -------------------------------------------------------------------------------

constexpr unsigned kNobody = 65534;

void need_powerless(const char* task) {
  char path[300];
  std::snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
  FILE* file = std::fopen(path, "r");
  if (!file) return;  // it has ended meanwhile
  char line[256];
  while (std::fgets(line, sizeof line, file)) {
    unsigned real = 0;
    unsigned effective = 0;
    unsigned long long capabilities = 0;
    if (std::sscanf(line, "Uid: %u %u", &real, &effective) == 2)
      NEED(effective == kNobody, "thread %s runs as user %u", task, effective);
    if (std::sscanf(line, "CapEff: %llx", &capabilities) == 1)
      NEED(capabilities == 0, "thread %s may do %llx", task, capabilities);
  }
  std::fclose(file);
}

void need_all_powerless() {
  DIR* tasks = opendir("/proc/self/task");
  NEED(tasks, "/proc/self/task");
  while (const dirent* task = readdir(tasks))
    if (task->d_name[0] != '.') need_powerless(task->d_name);
  closedir(tasks);
}

int give_up_rights(int (*give_up)()) {
  if (geteuid() != 0) return kSkipped;
  free_much(100 * MiB);
  nap(0.02);
  NEED(give_up() == 0, "errno %d", errno);
  for (int round = 0; round < 20; ++round) {
    need_all_powerless();
    if (round == 10) free_much(100 * MiB);
    nap(0.02);
  }
  return 0;
}

SCENARIO(setuid_after_much_was_freed) {
  return give_up_rights([] { return setuid(kNobody); });
}

SCENARIO(seteuid_after_much_was_freed) {
  return give_up_rights([] { return seteuid(kNobody); });
}

// ---- a sandbox ---------------------------------------------------------------------------------

// The calls that glibc's malloc makes, and those of the program itself.
const long kAllowed[] = {
    SYS_brk,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_futex,
    SYS_read,
    SYS_write,
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigreturn,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_restart_syscall,
#ifdef __i386__
    SYS_mmap2,
    SYS_futex_time64,
    SYS_clock_gettime64,
    SYS_clock_nanosleep_time64,
#endif

};

// `change` is prctl, by one of its names.
void kill_what_is_unusual(int (*change)(int, ...) = prctl) {
  constexpr unsigned char kCount = sizeof kAllowed / sizeof kAllowed[0];
  sock_filter code[kCount + 3];
  code[0] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (unsigned char at = 0; at < kCount; ++at) {
    const auto past = static_cast<unsigned char>(kCount - at);
    code[1 + at] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(kAllowed[at]), past, 0);
  }
  code[kCount + 1] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  code[kCount + 2] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog program{kCount + 3, code};
  NEED(change(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  NEED(change(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0, "errno %d", errno);
}

void use_large_blocks(double duration) {
  Random random(1);
  for (const double end = seconds() + duration; seconds() < end;) {
    free_much(20 * MiB, (1 + random.below(8)) * 256 * KiB);
    use_heap(random.next());
    nap(0.01);
  }
}

void use_few_blocks() {
  void* blocks[50];
  for (void*& block : blocks) block = std::malloc(100);
  for (void* block : blocks) std::free(block);
}

SCENARIO(filtered_from_the_start) {
  kill_what_is_unusual();
  use_large_blocks(times(1));
  return 0;
}

SCENARIO(filtered_after_much_was_freed) {
  free_much(100 * MiB);
  kill_what_is_unusual();
  use_large_blocks(times(1));
  return 0;
}

SCENARIO(filtered_with_64_bit_times) {
  if (__prctl_time64 == nullptr) return kSkipped;
  kill_what_is_unusual(__prctl_time64);
  use_large_blocks(times(1));
  return 0;
}

// By a clock that needs no call, nor the processor's counter, which strict mode takes away.
double coarse_seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Strict mode allows no call but to read, to write and to end. The blocks asked for there were free before.
SCENARIO(strict_after_much_was_freed) {
  std::thread([] {}).join();
  const pid_t child = fork();
  if (child != 0) return ended_well(child) ? 0 : 1;
  use_few_blocks();
  free_much(100 * MiB);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) _exit(1);
  for (const double end = coarse_seconds() + 1; coarse_seconds() < end;) use_few_blocks();
  syscall(SYS_exit, 0);
  return 1;
}

// For what a large heap grew by last, for small blocks, huge pages are asked for: until memory goes back.
SCENARIO(strict_while_huge_pages_are_asked_for) {
  const pid_t child = fork();
  if (child != 0) return ended_well(child) ? 0 : 1;
  std::vector<void*> blocks(100 + 100000);
  for (std::size_t at = 0; at < blocks.size(); ++at) blocks[at] = std::malloc(at < 100 ? MiB : KiB);
  for (void* block : blocks) std::memset(block, 1, KiB);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) _exit(1);
  for (void* block : blocks) std::free(block);
  for (const double end = coarse_seconds() + 1; coarse_seconds() < end;) use_few_blocks();
  syscall(SYS_exit, 0);
  return 1;
}

// ---- namespaces --------------------------------------------------------------------------------

// Whether it works in a process whose memory is at rest.
template <class Change> bool works_at_rest(Change change) {
  const pid_t child = fork();
  if (child == 0) _exit(change() == 0 ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0;
}

template <class Change> int change_after_much_was_freed(Change change) {
  if (!works_at_rest(change)) return kSkipped;
  for (int round = 0; round < 12 * times(1); ++round) {
    const pid_t child = fork();
    if (child == 0) {
      free_much(100 * MiB);
      nap(round * 0.003);
      NEED(change() == 0, "round %d, errno %d", round, errno);
      use_heap(1);
      _exit(0);
    }
    NEED(ended_well(child));
  }
  return 0;
}

SCENARIO(unshare_after_much_was_freed) {
  return change_after_much_was_freed([] { return unshare(CLONE_NEWUSER | CLONE_NEWNS); });
}

SCENARIO(setns_after_much_was_freed) {
  return change_after_much_was_freed([] {
    const int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    const int result = setns(own, CLONE_NEWNS);
    close(own);
    return result;
  });
}

// ---- code that is unloaded ---------------------------------------------------------------------

SCENARIO(dlclose_right_after_freeing) {
  const char* path = std::getenv("CHAOS_CORE_PLUGIN");
  NEED(path, "CHAOS_CORE_PLUGIN");
  for (int round = 0; round < 10 * times(1); ++round) {
    void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    NEED(plugin, "%s", dlerror());
    auto* use = reinterpret_cast<void (*)()>(dlsym(plugin, "chaos_use_and_free"));
    NEED(use, "%s", dlerror());
    if (round % 2)
      std::thread(use).join();
    else
      use();
    dlclose(plugin);
    nap(round % 3 * 0.03);
  }
  nap(0.3);
  return 0;
}

// ---- interposers -------------------------------------------------------------------------------

// With tests/chaos/plugins/interposer.cpp preloaded.
SCENARIO(under_interposers) {
  NEED(dlsym(RTLD_DEFAULT, "chaos_interposer"), "the interposer is not preloaded");
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  for (int round = 0; round < 5; ++round) {
    std::vector<std::thread> threads;
    for (std::uint64_t at = 1; at <= 4; ++at) threads.emplace_back(use_heap, at);
    for (std::thread& thread : threads) thread.join();
    free_much(100 * MiB);
    nap(0.1);
  }
  const bool returned = eventually(20, [] {
    free(malloc(100 * KiB));
    return resident() < 60 * MiB;
  });
  NEED(returned, "%zu MiB are held", resident() / MiB);
  return 0;
}

}  // namespace
