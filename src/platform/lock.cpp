#include "platform/lock.h"

namespace rh {

constinit std::atomic<bool> g_torn{false};

}  // namespace rh
