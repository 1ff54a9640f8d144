#include "platform/posix/helper.h"

#include "platform/platform.h"

namespace rh::platform {

constinit std::atomic<uint32_t> g_helper_alive{0};

// Whoever sees that it is alive may wait for it to end, even a handler that has interrupted the start of one.
bool start_helper_unheard(bool (*launch)(void (*main)()), void (*main)(), bool (*is_wanted)()) {
  uint32_t none = 0;
  if (!g_helper_alive.compare_exchange_strong(none, 1, std::memory_order_acquire)) return false;
  if (is_wanted()) {
    count_os_call(OsCall::thread);
    if (launch(main)) return true;
  }
  g_helper_alive.store(0, std::memory_order_release);
  return false;
}

void stop_helper(const std::atomic<uint32_t>& stop) {
  for (unsigned attempt = 0; g_helper_alive.load(std::memory_order_acquire) != 0; ++attempt) {
    wake(stop);
    back_off(attempt);
  }
}

}  // namespace rh::platform
