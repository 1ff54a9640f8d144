// mremap as kernels and limits refuse it: when it fails with MREMAP_FIXED, whatever lay at the target is gone.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <thread>

#include "held.h"

using namespace chaos;

namespace {

// Blocks that grow by moving, between others that must not be affected.
void grow_large_blocks(int rounds) {
  Random random(3);
  for (int round = 0; round < rounds; ++round) {
    Held growing[4];
    Held between[4];
    for (std::size_t at = 0; at < 4; ++at) {
      growing[at].take(8 * MiB, random.next());
      between[at].take(random.size(4 * MiB), random.next());
    }
    for (Held& held : growing) held.resize(16 * MiB + random.below(MiB));
    Held after[6];
    for (Held& held : after) held.take((1 + random.below(24)) * MiB, random.next());
    for (Held& held : growing) held.drop();
    for (Held& held : between) held.drop();
    for (Held& held : after) held.drop();
  }
}

// ---- limits ------------------------------------------------------------------------------------

void grow_over_the_limit(int resource) {
  Held growing[4];
  for (std::size_t at = 0; at < 4; ++at) growing[at].take(8 * MiB, at);
  free_much(64 * MiB);
  rlimit before{};
  getrlimit(static_cast<__rlimit_resource>(resource), &before);
  const rlimit tight{MiB, before.rlim_max};
  setrlimit(static_cast<__rlimit_resource>(resource), &tight);
  for (Held& held : growing) held.resize(16 * MiB);
  Held small[20];
  for (std::size_t at = 0; at < 20; ++at)
    if (void* made = malloc(MiB)) small[at].hold(made, MiB, at);
  setrlimit(static_cast<__rlimit_resource>(resource), &before);
  Held after[12];
  for (std::size_t at = 0; at < 12; ++at) after[at].take(16 * MiB, at);
  for (Held& held : growing) held.drop();
  for (Held& held : after) held.drop();
  for (Held& held : small)
    if (held) held.drop();
}

SCENARIO(realloc_with_address_space_below_use) {
  grow_over_the_limit(RLIMIT_AS);
  return 0;
}

SCENARIO(realloc_with_data_below_use) {
  grow_over_the_limit(RLIMIT_DATA);
  return 0;
}

// ---- a kernel in the middle --------------------------------------------------------------------

// Whether the whole range lies in one mapping. Read without stdio, which would allocate.
bool lies_in_one_mapping(std::uintptr_t start, std::size_t size) {
  static char text[1 << 20];
  const int file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", 0));
  std::size_t length = 0;
  for (ssize_t got = 0; (got = read(file, text + length, sizeof text - 1 - length)) > 0;)
    length += static_cast<std::size_t>(got);
  close(file);
  text[length] = 0;
  for (const char* line = text; line && *line; line = std::strchr(line, '\n'), line += line ? 1 : 0) {
    char* rest = nullptr;
    const std::uintptr_t from = std::strtoull(line, &rest, 16);
    const std::uintptr_t to = std::strtoull(rest + 1, nullptr, 16);
    if (from <= start && start < to) return start + size <= to;
  }
  return false;
}

enum class Refuses { all, several_mappings };
std::atomic<int> refused{0};

// Handles every mremap of the filtered threads: does what such a kernel would do.
void emulate(int listener, Refuses refuses, const std::atomic<bool>& done) {
  while (!done) {
    pollfd ready{listener, POLLIN, 0};
    if (poll(&ready, 1, 50) != 1) continue;
    seccomp_notif asked{};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) continue;
    seccomp_notif_resp answer{};
    answer.id = asked.id;
    const auto from = static_cast<std::uintptr_t>(asked.data.args[0]);
    const auto from_size = static_cast<std::size_t>(asked.data.args[1]);
    const auto to_size = static_cast<std::size_t>(asked.data.args[2]);
    if (refuses == Refuses::several_mappings && lies_in_one_mapping(from, from_size)) {
      answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    } else {
      ++refused;
      if (asked.data.args[3] & MREMAP_FIXED) munmap(reinterpret_cast<void*>(asked.data.args[4]), to_size);
      answer.error = -EFAULT;
    }
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
}

int listen_to_mremap() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{4, code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
}

int grow_on_such_a_kernel(Refuses refuses) {
  std::atomic<int> listener{-1};
  std::atomic<bool> done{false};
  std::atomic<bool> skipped{false};
  // Created before the filter, and so not subject to it.
  std::thread kernel([&] {
    while (listener == -1 && !done) nap(0.001);
    if (!done) emulate(listener, refuses, done);
  });
  std::thread([&] {
    const int handle = listen_to_mremap();
    skipped = handle < 0;
    if (skipped) return;
    listener = handle;
    grow_large_blocks(times(5));
  }).join();
  done = true;
  kernel.join();
  return skipped ? kSkipped : 0;
}

SCENARIO(mremap_that_always_fails) { return grow_on_such_a_kernel(Refuses::all); }

SCENARIO(mremap_of_one_mapping_only) { return grow_on_such_a_kernel(Refuses::several_mappings); }

}  // namespace
