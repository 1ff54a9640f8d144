#include "thread_slot.h"

#include <windows.h>

#include <atomic>

namespace recorder {
namespace {

// Of the slots that lie in the block itself; the first program code of a process finds nearly all of them free.
constexpr uint32_t kSlotsInBlock = 64;
constexpr uint32_t kSlotsOffset = 0x1480;
constexpr uint32_t kMostThreads = 32768;  // alive at a time

struct Entry {
  ThreadSlot slot;
  std::atomic<bool> taken;
};

constinit Entry* g_entries = nullptr;
constinit DWORD g_index = TLS_OUT_OF_INDEXES;
// What threads share when there are more, and ended ones: they are not recorded.
constinit ThreadSlot g_none = {&g_no_stream, 0, 0, true, kAlwaysInside};

void set(uintptr_t word) {
  const DWORD error = GetLastError();
  TlsSetValue(g_index, reinterpret_cast<void*>(word));
  SetLastError(error);
}

void set(const ThreadSlot& slot) { set(reinterpret_cast<uintptr_t>(&slot)); }

uintptr_t ended_word(uint32_t number) { return uintptr_t{number} << 1 | 1; }

}  // namespace

bool begin_thread_slots() {
  g_entries = static_cast<Entry*>(
      VirtualAlloc(nullptr, kMostThreads * sizeof(Entry), MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
  g_index = TlsAlloc();
  if (g_entries == nullptr || g_index >= kSlotsInBlock) return false;
  g_slot_offset = kSlotsOffset + g_index * uint32_t{sizeof(void*)};
  return true;
}

ThreadSlot& other_thread_slot(uintptr_t word) {
  if (word != 0) return g_none;
  for (uint32_t i = 0; i < kMostThreads; ++i) {
    if (g_entries[i].taken.load(std::memory_order_relaxed) || g_entries[i].taken.exchange(true)) continue;
    g_entries[i].slot = {&g_no_stream, 0, 0, false};
    set(g_entries[i].slot);
    return g_entries[i].slot;
  }
  set(g_none);
  return g_none;
}

void forget_thread_slot() {
  const uintptr_t word = thread_word();
  auto* slot = reinterpret_cast<ThreadSlot*>(word);
  if (!is_slot(word)) return set(ended_word(0));
  if (slot == &g_none) return;
  set(ended_word(slot->number));
  reinterpret_cast<Entry*>(slot)->taken.store(false, std::memory_order_release);
}

void lend_thread_slot(ThreadSlot& slot) {
  slot = {&g_no_stream, kOnlyGeneration, static_cast<uint32_t>(thread_word() >> 1), true};
  set(slot);
}

void take_back_thread_slot(const ThreadSlot& slot) { set(ended_word(slot.number)); }

}  // namespace recorder
