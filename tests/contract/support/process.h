// What a test can find out about its own process, and small waits. Nothing here allocates: the figures describe the
// heap under test.
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
constexpr bool kLastThreadExits = true;  // when it ends the program exits, with all handlers
#endif
constexpr bool narrow = sizeof(void*) == 4;

std::size_t resident();       // bytes of this process in memory now
std::size_t peak_resident();  // its maximum so far
std::uint64_t process_id();
int threads();  // threads of this process, including the allocator's own

// What runs this program, where the kernel would not: QEMU in user mode, as words with blanks between. Else null.
const char* emulator();

double seconds();  // monotonic
void nap(double duration);

// How long to wait for something that should happen at once. CONTRACT_PATIENCE limits it where a failure is expected.
double patience(double deadline);

// Calls `done` until it returns true; false when it has not within `deadline` seconds.
template <class Condition> bool eventually(double deadline, Condition done, double between = 0.01) {
  for (const double end = seconds() + deadline; !done(); nap(between))
    if (seconds() > end) return false;
  return true;
}

// A barrier for repeated use. Not std::barrier: in libstdc++ for MinGW a wake-up is sometimes lost, and then no thread
// leaves.
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

// Hides the origin of a pointer or size from the compiler, so that it neither elides nor warns about a call under test.
template <class T> T opaque(T value) {
  asm volatile("" : "+r"(value) : : "memory");
  return value;
}

}  // namespace contract
