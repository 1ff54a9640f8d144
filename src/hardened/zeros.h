// Memory that is to be zero, in steps of sixteen bytes.
#pragma once

#include "base/bits.h"
#include "base/compiler.h"
#include "base/config.h"

namespace rh::hardened {

using Sixteen [[gnu::vector_size(16), gnu::may_alias]] = uint64_t;
static_assert(sizeof(Sixteen) == kBlockAlign);

// Not memset: malloc and free may be called before the program is relocated, and the C library's functions not.
RH_INLINE void clear(void* from, size_t size) {
  Sixteen* at = static_cast<Sixteen*>(from);
  for (Sixteen* end = at + size / sizeof(Sixteen); at != end; ++at) {
    *at = Sixteen{};
    asm volatile("" : : : "memory");  // compilers make a call of memset of it
  }
}

RH_INLINE bool is_clear(const void* from, size_t size) {
  const Sixteen* at = static_cast<const Sixteen*>(from);
  const Sixteen* end = at + size / sizeof(Sixteen);
  Sixteen all = {};
  for (; end - at >= 4; at += 4) all |= at[0] | at[1] | at[2] | at[3];
  for (; at != end; ++at) all |= *at;
  return (all[0] | all[1]) == 0;
}

}  // namespace rh::hardened
