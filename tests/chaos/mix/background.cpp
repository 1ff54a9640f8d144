// Preloaded into a program that knows nothing of it: a thread disturbs it, with CHAOS_DISTURB as the seed.
#include <csignal>

#include "mix/disturb.h"

using namespace chaos;

namespace {

void* disturb(void* seed) {
  Random random(reinterpret_cast<std::uintptr_t>(seed));
  const Mix mix(random, false);
  for (;;) {
    mix.run_one(random);
    nap(static_cast<double>(random.below(5000)) * 1e-6);
  }
}

// The thread takes no signals: the program is otherwise disturbed only by its own.
[[gnu::constructor]] void begin() {
  const char* seed = std::getenv("CHAOS_DISTURB");
  if (!seed) return;
  environment_at_first();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  if (pthread_create(&thread, nullptr, disturb, reinterpret_cast<void*>(std::strtoull(seed, nullptr, 10))) == 0)
    pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
