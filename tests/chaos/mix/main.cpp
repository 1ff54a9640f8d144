// chaos_mix SEED SECONDS [refusing]: threads that allocate and check what they hold, beside threads that disturb them
// with a random choice of the disturbances in disturb.cpp. `refusing`: the system refuses some of the calls.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "mix/disturb.h"

using namespace chaos;

namespace {

std::atomic<bool> all_are_made{false};  // earlier limits would hit their creator
std::atomic<bool> stop{false};

[[noreturn]] void end_as_child(Held* own, std::size_t count) {
  for (std::size_t at = 0; at < count; ++at) own[at].drop();
  use_heap(1);
  _exit(0);
}

void* allocate_and_check(void* seed) {
  Random random(reinterpret_cast<std::uintptr_t>(seed));
  constexpr std::size_t kOwn = 200;
  Held own[kOwn];
  while (!stop) {
    Held& held = own[random.below(kOwn)];
    held.drop();
    held.take(random.one_in(60) ? random.below(MiB) : random.size(20 * KiB), random.next());
    if (random.one_in(4)) pass_on(random);
    if (is_interrupted_child()) end_as_child(own, kOwn);
    rest_if_wanted();
  }
  for (Held& held : own) held.drop();
  return nullptr;
}

struct Disturber {
  pthread_t thread;
  const Mix* mix;
  std::uint64_t seed;
};

void* disturb(void* raw) {
  const auto& disturber = *static_cast<const Disturber*>(raw);
  Random random(disturber.seed);
  while (!all_are_made) nap(0.0001);
  while (!stop) disturber.mix->run_one(random);
  return nullptr;
}

// A filter cannot choose at random: which calls it refuses depends on their addresses and lengths, and on the seed. In
// one run of three no threads can be created from then on.
void refuse_some_calls(Random& random) {
  const auto bits = [&random] { return static_cast<unsigned>(random.below(8)) << 16; };
  const auto load = [](std::size_t at) {
    return sock_filter(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(at)));
  };
  const auto is = [](long call, unsigned char yes, unsigned char no) {
    return sock_filter(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), yes, no));
  };
  constexpr std::size_t kFirst = offsetof(seccomp_data, args);
  const unsigned refusal = SECCOMP_RET_ERRNO | (random.one_in(4) ? EPERM : ENOMEM);
  const long clone3 = random.one_in(3) ? SYS_clone3 : -1;
  const sock_filter code[] = {
      load(offsetof(seccomp_data, nr)),
      is(SYS_mprotect, 4, 0),
      is(SYS_madvise, 3, 0),
      is(SYS_mremap, 2, 0),
      is(SYS_mmap, 1, 0),
      is(clone3, 6, 7),
      load(kFirst),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 7u << 16),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, bits(), 0, 4),
      // Half of those, by length.
      load(kFirst + 8),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 1u << (12 + random.below(4))),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, refusal),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{sizeof code / sizeof code[0], const_cast<sock_filter*>(code)};
  memory_is_scarce = true;
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  NEED(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0, "errno %d", errno);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: chaos_mix SEED SECONDS [refusing]\n", stderr);
    return 2;
  }
  environment_at_first();
  Random random(std::strtoull(argv[1], nullptr, 10));
  const double end = seconds() + std::strtod(argv[2], nullptr);
  const bool refusing = argc > 3 && std::strcmp(argv[3], "refusing") == 0;
  const Mix mix(random, random.one_in(4));
  mix.print();
  pthread_t workers[4];
  for (pthread_t& worker : workers) {
    NEED(pthread_create(&worker, nullptr, allocate_and_check, reinterpret_cast<void*>(random.next())) == 0);
    offer_to_interrupt(worker);
  }
  Disturber disturbers[3];
  for (Disturber& disturber : disturbers) {
    disturber.mix = &mix;
    disturber.seed = random.next();
    NEED(pthread_create(&disturber.thread, nullptr, disturb, &disturber) == 0);
  }
  all_are_made = true;
  if (refusing) refuse_some_calls(random);
  while (seconds() < end) nap(0.02);
  stop = true;
  for (Disturber& disturber : disturbers) pthread_join(disturber.thread, nullptr);
  for (pthread_t worker : workers) pthread_join(worker, nullptr);
  drop_passed();
  return 0;
}
