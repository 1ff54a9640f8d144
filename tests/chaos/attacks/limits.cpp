// Memory exists, but is on its way back to the system.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "held.h"

using namespace chaos;

namespace {

std::size_t address_space() {
  FILE* file = std::fopen("/proc/self/statm", "r");
  std::size_t pages = 0;
  NEED(file && std::fscanf(file, "%zu", &pages) == 1, "statm");
  std::fclose(file);
  return pages * 4096;
}

void limit(int resource, std::size_t bytes) {
  const rlimit most{bytes, RLIM_INFINITY};
  NEED(setrlimit(static_cast<__rlimit_resource>(resource), &most) == 0);
}

constexpr std::size_t kBlock = 200 * MiB;

void use_and_free(double pause, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    void* block = malloc(kBlock);
    NEED(block, "round %d", round);
    std::memset(block, round, kBlock);
    free(block);
    nap(pause);
  }
}

// REHEAP_DECAY_MS=40: the pauses end while the block is being returned.
SCENARIO(one_block_again_and_again_under_a_data_limit) {
  limit(RLIMIT_DATA, 2 * kBlock);
  for (int pause = 30; pause < 60; pause += 10) use_and_free(pause * 0.001, 1 + times(1));
  return 0;
}

SCENARIO(one_block_again_and_again_under_a_limit) {
  free(malloc(1));
  limit(RLIMIT_AS, address_space() + kBlock + kBlock / 2);
  for (int pause = 30; pause < 60; pause += 10) use_and_free(pause * 0.001, 1 + times(1));
  return 0;
}

// One thread returns memory, another asks for it.
SCENARIO(allocate_while_another_trims) {
  limit(RLIMIT_DATA, 2 * kBlock);
  std::atomic<bool> stop{false};
  std::thread other([&stop] {
    while (!stop) malloc_trim(0);
  });
  use_and_free(0, 5 * times(1));
  stop = true;
  other.join();
  return 0;
}

// ---- no threads --------------------------------------------------------------------------------

void refuse_threads() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
  };
  const sock_fprog program{5, code};
  NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  NEED(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0, "errno %d", errno);
}

SCENARIO(aligned_blocks_under_a_limit_without_threads) {
  refuse_threads();
  limit(RLIMIT_AS, address_space() + 256 * MiB);
  Random random(1);
  for (int round = 0; round < 200 * times(1); ++round) {
    const std::size_t alignment = std::size_t{64 * KiB} << random.below(8);
    const std::size_t size = (10 + random.below(70)) * MiB;
    void* block = nullptr;
    NEED(posix_memalign(&block, alignment, size) == 0, "round %d: %zu at %zu", round, size, alignment);
    std::memset(block, round, 2 * MiB);
    free(block);
  }
  return 0;
}

}  // namespace
