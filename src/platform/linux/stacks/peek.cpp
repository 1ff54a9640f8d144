#include "platform/linux/stacks/peek.h"

#include <sys/uio.h>

#include "platform/linux/syscall.h"

namespace rh::stacks {

static bool copy(void* to, const iovec* there, unsigned pieces) {
  using platform::system_call;
  const iovec here = {to, pieces * there->iov_len};
  const long got = system_call(SYS_process_vm_readv, system_call(SYS_getpid), reinterpret_cast<long>(&here), 1,
                               reinterpret_cast<long>(there), static_cast<long>(pieces), 0);
  return got == static_cast<long>(here.iov_len);
}

bool peek(uintptr_t at, void* to, size_t bytes) {
  const iovec there = {reinterpret_cast<void*>(at), bytes};
  return copy(to, &there, 1);
}

bool peek_each(uintptr_t at, size_t apart, unsigned pieces, void* to, size_t bytes) {
  iovec there[kMostPieces];
  for (unsigned i = 0; i != pieces; ++i) there[i] = {reinterpret_cast<void*>(at + i * apart), bytes};
  return copy(to, there, pieces);
}

void Peeking::skip(uint64_t bytes) {
  if (bytes > end_ - at_)
    fail();
  else
    at_ += bytes;
}

bool Peeking::fill(size_t least) {
  if (failed_ || at_ > end_ || least > end_ - at_) return fail();
  const size_t bytes = end_ - at_ < sizeof window_ ? end_ - at_ : sizeof window_;
  if (!peek(at_, window_, bytes)) return fail();
  window_at_ = at_;
  window_end_ = at_ + bytes;
  return true;
}

uint64_t Peeking::get_long_uleb(uint8_t first) {
  uint64_t value = first & 0x7f;
  for (unsigned shift = 7; shift < 64; shift += 7) {
    const auto byte = get<uint8_t>();
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  fail();
  return 0;
}

int64_t Peeking::get_sleb() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64;) {
    const auto byte = get<uint8_t>();
    value |= uint64_t{byte & 0x7fu} << shift;
    shift += 7;
    if (byte >= 0x80) continue;
    if ((byte & 0x40) && shift < 64) value |= ~uint64_t{0} << shift;
    return static_cast<int64_t>(value);
  }
  fail();
  return 0;
}

}  // namespace rh::stacks
