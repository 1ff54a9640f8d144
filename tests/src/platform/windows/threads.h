// Threads for the tests.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "platform/windows/system.h"

namespace rh {

// Waits for what another thread is about to do; the time limit of the test ends it.
template <typename Condition> void until(Condition condition) {
  while (!condition()) Sleep(1);
}

// Runs `body` with each number below `count` in a separate thread, all at once: none sleeps before.
template <typename Body> void in_threads(unsigned count, Body body) {
  std::atomic<unsigned> ready{0};
  std::vector<std::thread> threads;
  for (unsigned at = 0; at < count; ++at) {
    threads.emplace_back([&, at] {
      ++ready;
      while (ready != count) SwitchToThread();
      body(at);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A thread that runs what it is given, one thing after another.
class Obedient {
 public:
  Obedient()
      : thread_([this] {
          for (;;) {
            until([this] { return state_ != kIdle; });
            if (state_ == kEnds) return;
            task_();
            state_ = kIdle;
          }
        }) {}
  ~Obedient() {
    state_ = kEnds;
    thread_.join();
  }
  Obedient(const Obedient&) = delete;
  Obedient& operator=(const Obedient&) = delete;

  void run(std::function<void()> task) {
    task_ = std::move(task);
    state_ = kWorks;
    until([this] { return state_ == kIdle; });
  }

 private:
  enum State { kIdle, kWorks, kEnds };
  std::function<void()> task_;
  std::atomic<State> state_{kIdle};
  std::thread thread_;
};

}  // namespace rh
