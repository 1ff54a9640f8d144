#include "platform/thread_slot.h"

namespace rh::platform {

#if !defined(_WIN32)
alignas(64) constexpr unsigned char g_unset[kUnsetBytes] = {};
constinit thread_local const void* t_word = g_unset;
#endif

}  // namespace rh::platform
