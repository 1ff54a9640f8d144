// Each thread's word. The fake platform, which simulates threads, uses this too.
#include "platform/thread_slot.h"

#include <atomic>

#include "platform/windows/system.h"

namespace rh::platform {

namespace {

// Offsets in the thread environment block, which winternl.h and <windows.h> describe in part; they have been the same
// in every version.
#if defined(_WIN64)
constexpr uintptr_t kAlwaysNull = 0x18;  // NT_TIB.SubSystemTib, for the OS/2 subsystem
constexpr uintptr_t kSlots = 0x1480;     // TlsSlots
#else
constexpr uintptr_t kAlwaysNull = 0x0c;
constexpr uintptr_t kSlots = 0xe10;
#endif
constexpr DWORD kNearSlots = 64;

constexpr DWORD kNoSlot = TLS_OUT_OF_INDEXES;
constinit std::atomic<DWORD> g_slot{kNoSlot};

}  // namespace

constinit uintptr_t g_thread_word_at = kAlwaysNull;

void* thread_word_slow() {
  if (void* word = thread_word(); word != nullptr) return word;
  DWORD slot = g_slot.load(std::memory_order_acquire);
  if (slot == kNoSlot || slot < kNearSlots) return nullptr;
  KeepLastError keep;
  return TlsGetValue(slot);
}

static DWORD take_slot() {
  DWORD slot = g_slot.load(std::memory_order_acquire);
  if (slot != kNoSlot) return slot;
  DWORD mine = TlsAlloc();
  if (mine == kNoSlot) return kNoSlot;
  if (!g_slot.compare_exchange_strong(slot, mine, std::memory_order_acq_rel)) {
    TlsFree(mine);
    return slot;
  }
  if (mine < kNearSlots) g_thread_word_at = kSlots + mine * sizeof(void*);
  return mine;
}

void set_thread_word(void* word) {
  KeepLastError keep;
  DWORD slot = take_slot();
  if (slot != kNoSlot) TlsSetValue(slot, word);
}

bool thread_words_are_near() { return g_thread_word_at != kAlwaysNull; }

void forget_thread_words() {
  DWORD slot = g_slot.exchange(kNoSlot, std::memory_order_acq_rel);
  g_thread_word_at = kAlwaysNull;
  if (slot != kNoSlot) TlsFree(slot);
}

}  // namespace rh::platform
