#include "entry/linux/sandbox.h"

#include <fcntl.h>

#include <atomic>

#include "base/text.h"
#include "heap/limit.h"
#include "platform/linux/syscall.h"

namespace rh::sandbox {

namespace {

enum class State { unknown, open, closed };
constinit std::atomic<State> g_state{State::unknown};

// The line "Seccomp:" of a thread's status: 0 without a filter.
State read_state() {
  constexpr const char* kStatus = "/proc/thread-self/status";
  constexpr char kLine[] = "\nSeccomp:\t";
  char status[4096];
  long file = platform::system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(kStatus), O_RDONLY | O_CLOEXEC);
  if (platform::is_error(file)) return State::closed;
  long length =
      platform::system_call(SYS_read, file, reinterpret_cast<long>(status), static_cast<long>(sizeof(status) - 1));
  platform::system_call(SYS_close, file);
  for (long at = 0; at + static_cast<long>(sizeof(kLine)) <= length; ++at) {
    if (__builtin_memcmp(status + at, kLine, sizeof(kLine) - 1) != 0) continue;
    return status[at + static_cast<long>(sizeof(kLine)) - 1] == '0' ? State::open : State::closed;
  }
  return State::open;  // a kernel without filters
}

}  // namespace

bool is_closed() {
  if (g_state.load(std::memory_order_relaxed) == State::unknown) {
    State unknown = State::unknown;
    g_state.compare_exchange_strong(unknown, read_state());
  }
  return g_state.load(std::memory_order_relaxed) == State::closed;
}

void note_closing() {
  g_state.store(State::closed, std::memory_order_relaxed);
  limit::stop_following();
}

}  // namespace rh::sandbox
