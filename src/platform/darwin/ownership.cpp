// Ownership by a thread is the thread's number, which no other thread has until the machine is started again. Whether
// that thread lives the kernel says. So nothing has to run at a thread's end, however it ends.
#include <libproc.h>

#include "platform/darwin/system.h"
#include "platform/platform.h"

namespace rh::platform {

namespace {

// A thread that lives is not asked after again for so long: it is a call of the kernel.
constexpr uint32_t kAskAgainMs = 10;

constexpr uint64_t kNobody = 0;  // no thread's number

struct Owned {
  std::atomic<uint64_t> owner;
  std::atomic<uint32_t> asked_at;  // 0: not yet
};

Owned& owned(unsigned char* storage) { return *reinterpret_cast<Owned*>(storage); }

uint64_t owner_in(const unsigned char* storage) {
  return reinterpret_cast<const Owned*>(storage)->owner.load(std::memory_order_relaxed);
}

// By number, where a port's name might be another thing's by now. What else the kernel may say is no proof.
bool lives(uint64_t number) {
  KeepErrno keep;
  proc_threadinfo info;
  return proc_pidinfo(static_cast<int>(process_id()), PROC_PIDTHREADID64INFO, number, &info, sizeof(info)) != 0 ||
         errno != ESRCH;
}

bool is_gone(Owned& own, uint64_t owner) {
  const uint32_t now = static_cast<uint32_t>(now_ms()), asked_at = own.asked_at.load(std::memory_order_relaxed);
  if (asked_at != 0 && now - asked_at < kAskAgainMs) return false;
  if (!lives(owner)) return true;
  own.asked_at.store(now | 1, std::memory_order_relaxed);
  return false;
}

}  // namespace

void Ownership::reset() {
  static_assert(sizeof(Owned) <= sizeof(storage_));
  owned(storage_).owner.store(kNobody, std::memory_order_relaxed);
  owned(storage_).asked_at.store(0, std::memory_order_relaxed);
}

bool Ownership::try_acquire() {
  Owned& own = owned(storage_);
  const uint64_t self = thread_id();
  uint64_t owner = own.owner.load(std::memory_order_relaxed);
  if (owner == self || (owner != kNobody && !is_gone(own, owner))) return false;
  if (!own.owner.compare_exchange_strong(owner, self, std::memory_order_acquire)) return false;
  own.asked_at.store(0, std::memory_order_relaxed);
  return true;
}

void Ownership::release() { owned(storage_).owner.store(kNobody, std::memory_order_release); }

bool Ownership::is_mine() const { return owner_in(storage_) == thread_id(); }

bool Ownership::is_free() const { return owner_in(storage_) == kNobody; }

bool Ownership::drop() { return true; }

}  // namespace rh::platform
