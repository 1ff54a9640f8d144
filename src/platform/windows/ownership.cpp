// Ownership by a thread is a kernel mutex that the thread holds for life: when the thread ends, in any way, the mutex
// is abandoned, and the next thread to ask gets it. So no callback has to run at a thread's end, and none can outlive a
// library that was unloaded.
#include "platform/platform.h"
#include "platform/windows/system.h"

namespace rh::platform {

namespace {

// Asking the kernel costs a call. It is skipped while no thread is known to have ended since the last time, but not for
// ever, because the end of a terminated thread goes unnoticed.
constexpr uint32_t kAskAgainMs = 1000;

constinit std::atomic<uint32_t> g_thread_ends{0};

struct Owned {
  HANDLE mutex;
  std::atomic<uint32_t> owner;  // the token of the thread that holds it
  std::atomic<uint32_t> ends_seen, asked_at;
};

Owned& owned(unsigned char* storage) { return *reinterpret_cast<Owned*>(storage); }

bool worth_asking(Owned& own) {
  uint32_t ends = g_thread_ends.load(std::memory_order_relaxed);
  uint32_t now = static_cast<uint32_t>(now_ms());
  if (own.ends_seen.load(std::memory_order_relaxed) == ends &&
      now - own.asked_at.load(std::memory_order_relaxed) < kAskAgainMs) {
    return false;
  }
  own.ends_seen.store(ends, std::memory_order_relaxed);
  own.asked_at.store(now, std::memory_order_relaxed);
  return true;
}

}  // namespace

void note_thread_end() {
  g_thread_ends.fetch_add(1, std::memory_order_relaxed);
  keep_exit_code();
}

void Ownership::reset() {
  static_assert(sizeof(Owned) <= sizeof(storage_));
  KeepLastError keep;
  Owned& own = owned(storage_);
  own.mutex = protect_from_close(CreateMutexW(nullptr, FALSE, nullptr));
  own.owner.store(0, std::memory_order_relaxed);
}

bool Ownership::try_acquire() {
  Owned& own = owned(storage_);
  uint32_t token = static_cast<uint32_t>(thread_token());
  uint32_t owner = own.owner.load(std::memory_order_relaxed);
  if (owner == token || (owner != 0 && !worth_asking(own))) return false;
  // Without a mutex (the process is out of handles) what is owned once stays owned.
  if (own.mutex == nullptr) return own.owner.compare_exchange_strong(owner = 0, token, std::memory_order_acquire);
  KeepLastError keep;
  DWORD result = WaitForSingleObject(own.mutex, 0);
  if (result != WAIT_OBJECT_0 && result != WAIT_ABANDONED) return false;
  own.owner.store(token, std::memory_order_relaxed);
  return true;
}

void Ownership::release() {
  KeepLastError keep;
  Owned& own = owned(storage_);
  own.owner.store(0, std::memory_order_release);
  if (own.mutex != nullptr) ReleaseMutex(own.mutex);
}

bool Ownership::is_mine() const {
  const Owned& own = *reinterpret_cast<const Owned*>(storage_);
  return own.owner.load(std::memory_order_relaxed) == static_cast<uint32_t>(thread_token());
}

bool Ownership::is_free() const { return false; }

bool Ownership::drop() {
  Owned& own = owned(storage_);
  close_protected(own.mutex);
  own.mutex = nullptr;
  return true;
}

}  // namespace rh::platform
