// Threads whose variables are freed with their stacks, by the C library with its lock of all stacks held. What such a
// free does, as starting the helper, may not make a thread by the C library: it would wait for that lock for ever. The
// program has more variables of its own than the helper keeps room for: the library's lie behind them.
//
//   variables PLUGIN   with tests/contract/plugins/variables.cpp
#include <dlfcn.h>
#include <unistd.h>

#include <barrier>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr int kThreads = 16;  // with more stacks than the C library keeps
constexpr unsigned kBytes = 100 * 1024;
thread_local volatile char variables[kBytes];

void run_threads(void (*touch)()) {
  std::barrier all_there(kThreads);
  std::vector<std::thread> threads;
  for (int at = 0; at < kThreads; ++at)
    threads.emplace_back([&] {
      variables[kBytes - 1] = 1;
      touch();
      all_there.arrive_and_wait();
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int, char** arguments) {
  void* library = dlopen(arguments[1], RTLD_NOW);
  auto* touch = reinterpret_cast<void (*)()>(library != nullptr ? dlsym(library, "plugin_touch_variables") : nullptr);
  if (touch == nullptr) {
    std::fprintf(stderr, "variables: %s\n", dlerror());
    return 1;
  }
  for (int round = 0; round < 3; ++round) {
    run_threads(touch);
    usleep(700000);  // the helper ends
  }
  return 0;
}
