#include "entry/windows/copies.h"

#include <atomic>

#include "entry/windows/blocks.h"
#include "platform/windows/system.h"

#include <winternl.h>

extern "C" __declspec(dllimport) PPEB NTAPI RtlGetCurrentPeb(void);

namespace rh::copies {

namespace {

constexpr uint32_t kMark = 0x70616568;  // "heap"
constexpr size_t kMost = 32;

// Where another copy stands, and how many threads are asking it.
struct Place {
  std::atomic<const Copy*> copy{nullptr};
  std::atomic<uint32_t> askers{0};
};
constinit Place g_others[kMost] = {};

size_t own_bytes_from(const void* pointer) {
  if (Region* region = regions::find(pointer)) return rules::asked_in_region(region, pointer, "realloc");
  return blocks::bytes_from(pointer, "realloc");
}

// In a hardened build all that may be ours is looked at here.
bool is_own(const void* pointer) {
  return (kHardened ? in_realm(pointer) : owns(pointer)) || regions::find(pointer) != nullptr;
}

void free_own(void* pointer) {
  if (rules::free_in_region(pointer)) return;
  void* block = blocks::start_of(pointer, "free");
  if constexpr (kHardened)
    blocks::free(block, rules::Maker::any);
  else
    rh::deallocate(block);
}

void meet(const Copy* other) {
  for (Place& place : g_others) {
    const Copy* none = nullptr;
    if (place.copy.load(std::memory_order_acquire) == other) return;
    if (place.copy.compare_exchange_strong(none, other, std::memory_order_acq_rel)) return;
  }
}

// Not for ever: a thread may have been terminated while it asked.
void wait_for_askers(const Place& place) {
  constexpr uint64_t kPatienceMs = 10'000;
  uint64_t late_at = platform::now_ms() + kPatienceMs;
  for (unsigned attempt = 0; place.askers.load(std::memory_order_seq_cst) != 0; ++attempt) {
    if (platform::others_are_gone() || platform::now_ms() >= late_at) return;
    platform::back_off(attempt);
  }
}

void forget(const Copy* other) {
  for (Place& place : g_others) {
    const Copy* expected = other;
    if (place.copy.compare_exchange_strong(expected, nullptr, std::memory_order_seq_cst)) wait_for_askers(place);
  }
}

// Asks the others in turn, until one made the block. True when there was one.
template <typename Question> bool ask_maker_of(const void* pointer, Question question) {
  for (Place& place : g_others) {
    if (place.copy.load(std::memory_order_relaxed) == nullptr) continue;
    place.askers.fetch_add(1, std::memory_order_seq_cst);
    // Only now it can be relied on to stay: who forgets it sees this thread.
    const Copy* other = place.copy.load(std::memory_order_seq_cst);
    bool made_it = other != nullptr && other->owns(pointer);
    if (made_it) question(other);
    place.askers.fetch_sub(1, std::memory_order_release);
    if (made_it) return true;
  }
  return false;
}

__attribute__((section(".reheap"), used))
const Copy kSelf = {kMark, sizeof(Copy), is_own, own_bytes_from, free_own, meet, forget};

template <typename T> const T* at(const void* base, size_t offset) {
  return reinterpret_cast<const T*>(static_cast<const char*>(base) + offset);
}

bool is_named_reheap(const IMAGE_SECTION_HEADER& section) { return __builtin_memcmp(section.Name, ".reheap", 8) == 0; }

// The copy in a loaded module, or null.
const Copy* copy_in(const void* base) {
  const auto* dos = static_cast<const IMAGE_DOS_HEADER*>(base);
  if (dos->e_magic != IMAGE_DOS_SIGNATURE) return nullptr;
  const auto* headers = at<IMAGE_NT_HEADERS>(base, static_cast<size_t>(dos->e_lfanew));
  const auto* sections = at<IMAGE_SECTION_HEADER>(&headers->OptionalHeader, headers->FileHeader.SizeOfOptionalHeader);
  for (WORD index = 0; index < headers->FileHeader.NumberOfSections; ++index) {
    if (!is_named_reheap(sections[index])) continue;
    const auto* copy = at<Copy>(base, sections[index].VirtualAddress);
    return copy->mark == kMark && copy->size >= sizeof(Copy) ? copy : nullptr;
  }
  return nullptr;
}

template <typename Visit> void for_each_other(Visit visit) {
  const LIST_ENTRY* list = &RtlGetCurrentPeb()->Ldr->InMemoryOrderModuleList;
  for (const LIST_ENTRY* entry = list->Flink; entry != list; entry = entry->Flink) {
    constexpr size_t kLinks = offsetof(LDR_DATA_TABLE_ENTRY, InMemoryOrderLinks);
    const auto* module = at<LDR_DATA_TABLE_ENTRY>(entry, 0 - kLinks);
    const Copy* copy = copy_in(module->DllBase);
    if (copy != nullptr && copy != &kSelf) visit(copy);
  }
}

}  // namespace

void announce() {
  for_each_other([](const Copy* other) {
    meet(other);
    other->meet(&kSelf);
  });
}

void withdraw() {
  for (Place& place : g_others)
    if (const Copy* other = place.copy.load(std::memory_order_acquire)) other->forget(&kSelf);
}

bool made(const void* pointer) {
  if (regions::find(pointer) != nullptr) return true;
  return ask_maker_of(pointer, [](const Copy*) {});
}

bool bytes_from(const void* pointer, size_t* bytes) {
  if (Region* region = regions::find(pointer)) {
    *bytes = rules::asked_in_region(region, pointer, "realloc");
    return true;
  }
  return ask_maker_of(pointer, [=](const Copy* maker) { *bytes = maker->bytes_from(pointer); });
}

bool free(void* pointer) {
  if (rules::free_in_region(pointer)) return true;
  return ask_maker_of(pointer, [=](const Copy* maker) { maker->free(pointer); });
}

}  // namespace rh::copies
