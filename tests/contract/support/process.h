// What a test can learn about its own process, and small waits. Nothing here allocates: the figures
// are about the heap under test.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>

namespace contract {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;
#ifdef _WIN32
constexpr bool kLastThreadExits = false;
#else
constexpr bool kLastThreadExits = true;  // its end is that of the program, with all handlers
#endif
constexpr bool narrow = sizeof(void*) == 4;

std::size_t resident();       // bytes of this process in memory now
std::size_t peak_resident();  // the most it ever was
std::uint64_t process_id();
int threads();  // tasks of this process, the allocator's own included

double seconds();  // monotonic
void nap(double duration);

// How long to wait for what should come at once. CONTRACT_PATIENCE bounds it where a failure is
// expected.
double patience(double deadline);

// Asks `done` until it says yes; false when it has not by `deadline` seconds from now.
template <class Condition>
bool eventually(double deadline, Condition done, double between = 0.01) {
  for (const double end = seconds() + deadline; !done(); nap(between)) {
    if (seconds() > end) return false;
  }
  return true;
}

// Where threads wait for each other, again and again. Not std::barrier: a wake-up is sometimes lost in libstdc++'s for
// MinGW, and then nobody leaves.
class Barrier {
 public:
  explicit Barrier(int members) : members_(members) {}
  void arrive_and_wait() {
    const int round = round_;
    if (++arrived_ == members_) {
      arrived_ = 0;
      ++round_;
    }
    while (round_ == round) nap(0.0005);
  }

 private:
  const int members_;
  std::atomic<int> arrived_{0};
  std::atomic<int> round_{0};
};

// Keeps the compiler from knowing where a pointer or a size came from, so that it neither elides
// nor warns about a call that the test is about.
template <class T>
T opaque(T value) {
  asm volatile("" : "+r"(value) : : "memory");
  return value;
}

}  // namespace contract
