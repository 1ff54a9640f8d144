#include "platform/thread_slot.h"

namespace rh::platform {

alignas(64) constexpr unsigned char g_unset[kUnsetBytes] = {};
constinit thread_local const void* t_word = g_unset;

}  // namespace rh::platform
