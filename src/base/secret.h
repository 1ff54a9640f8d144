// Numbers that whoever attacks the process does not know: with them hardened builds encode what lies beside the
// program's own data. Each has one use, so that what is learnt of one tells nothing of the others.
#pragma once

#include <cstdint>

#include "base/compiler.h"
#include "base/config.h"

namespace rh {

enum class Secret : uint8_t { links, marks, order, tails, tail_factor, regions, count };

// 0 until the library has started, and in all builds but hardened ones.
RH_HIDDEN extern constinit uint64_t g_secrets[static_cast<unsigned>(Secret::count)];

RH_INLINE uint64_t secret(Secret which) { return kHardened ? g_secrets[static_cast<unsigned>(which)] : 0; }

}  // namespace rh
