// Ownership by a thread is the thread's number, which no other thread has until the machine is started again, and the
// port by which the kernel is asked whether the thread lives. So nothing has to run at a thread's end, however it ends.
#include <mach/mach_init.h>
#include <mach/mach_port.h>
#include <mach/thread_act.h>
#include <pthread.h>

#include "platform/platform.h"

namespace rh::platform {

namespace {

// A thread that lives is not asked after again for so long: it is a call of the kernel.
constexpr uint32_t kAskAgainMs = 100;

constexpr uint64_t kNobody = 0, kBeingTaken = 1;  // no thread has these numbers

struct Owned {
  std::atomic<uint64_t> owner;
  std::atomic<mach_port_t> port;  // the owner's: of one that has just been read if the owner is still the same
  std::atomic<uint32_t> asked_at;
};

Owned& owned(unsigned char* storage) { return *reinterpret_cast<Owned*>(storage); }

uint32_t now() { return static_cast<uint32_t>(now_ms()); }

// Ports' names are used again, threads' numbers are not.
bool lives(uint64_t number, mach_port_t port) {
  thread_identifier_info_data_t info = {};
  mach_msg_type_number_t count = THREAD_IDENTIFIER_INFO_COUNT;
  auto* words = reinterpret_cast<thread_info_t>(&info);
  return thread_info(port, THREAD_IDENTIFIER_INFO, words, &count) == KERN_SUCCESS && info.thread_id == number;
}

bool is_gone(Owned& own, uint64_t owner) {
  const uint32_t asked_at = own.asked_at.load(std::memory_order_relaxed);
  if (owner == kBeingTaken || (asked_at != 0 && now() - asked_at < kAskAgainMs)) return false;
  const mach_port_t port = own.port.load(std::memory_order_acquire);
  if (own.owner.load(std::memory_order_acquire) != owner) return false;
  if (!lives(owner, port)) return true;
  own.asked_at.store(now() | 1, std::memory_order_relaxed);
  return false;
}

}  // namespace

void Ownership::reset() {
  static_assert(sizeof(Owned) <= sizeof(storage_));
  Owned& own = owned(storage_);
  own.owner.store(kNobody, std::memory_order_relaxed);
  own.asked_at.store(0, std::memory_order_relaxed);
}

// Who reads a port between the two owners sees that the owner is another one now.
bool Ownership::try_acquire() {
  Owned& own = owned(storage_);
  const uint64_t self = thread_id();
  uint64_t owner = own.owner.load(std::memory_order_acquire);
  if (owner == self || (owner != kNobody && !is_gone(own, owner))) return false;
  if (!own.owner.compare_exchange_strong(owner, kBeingTaken, std::memory_order_acq_rel)) return false;
  own.port.store(pthread_mach_thread_np(pthread_self()), std::memory_order_release);
  own.asked_at.store(0, std::memory_order_relaxed);
  own.owner.store(self, std::memory_order_release);
  return true;
}

void Ownership::release() { owned(storage_).owner.store(kNobody, std::memory_order_release); }

bool Ownership::is_mine() const {
  return reinterpret_cast<const Owned*>(storage_)->owner.load(std::memory_order_relaxed) == thread_id();
}

bool Ownership::is_free() const {
  return reinterpret_cast<const Owned*>(storage_)->owner.load(std::memory_order_relaxed) == kNobody;
}

void Ownership::drop() {}

}  // namespace rh::platform
