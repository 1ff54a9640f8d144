#include "entry/windows/copies.h"

#include <atomic>

#include "heap/heap.h"
#include "platform/windows/system.h"

#include <winternl.h>

extern "C" __declspec(dllimport) PPEB NTAPI RtlGetCurrentPeb(void);

namespace rh::copies {

namespace {

constexpr uint32_t kMark = 0x70616568;  // "heap"
constexpr size_t kMost = 32;
constinit std::atomic<const Copy*> g_others[kMost] = {};

size_t bytes_from(const void* pointer) {
  const void* start = block_start(pointer, "realloc");
  return requested_size(start, "realloc") - (address_of(pointer) - address_of(start));
}

void free_within(void* pointer) { rh::deallocate(block_start(pointer, "free")); }

void meet(const Copy* other) {
  for (std::atomic<const Copy*>& place : g_others) {
    const Copy* none = nullptr;
    if (place.load(std::memory_order_acquire) == other) return;
    if (place.compare_exchange_strong(none, other, std::memory_order_acq_rel)) return;
  }
}

void forget(const Copy* other) {
  for (std::atomic<const Copy*>& place : g_others) {
    const Copy* expected = other;
    place.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel);
  }
}

__attribute__((section(".reheap"), used))
const Copy kSelf = {kMark, sizeof(Copy), rh::owns, bytes_from, free_within, meet, forget};

template <typename T>
const T* at(const void* base, size_t offset) {
  return reinterpret_cast<const T*>(static_cast<const char*>(base) + offset);
}

bool is_named_reheap(const IMAGE_SECTION_HEADER& section) {
  return __builtin_memcmp(section.Name, ".reheap", 8) == 0;
}

// The copy in a loaded module, or null.
const Copy* copy_in(const void* base) {
  const auto* dos = static_cast<const IMAGE_DOS_HEADER*>(base);
  if (dos->e_magic != IMAGE_DOS_SIGNATURE) return nullptr;
  const auto* headers = at<IMAGE_NT_HEADERS>(base, static_cast<size_t>(dos->e_lfanew));
  const auto* sections =
      at<IMAGE_SECTION_HEADER>(&headers->OptionalHeader, headers->FileHeader.SizeOfOptionalHeader);
  for (WORD index = 0; index < headers->FileHeader.NumberOfSections; ++index) {
    if (!is_named_reheap(sections[index])) continue;
    const auto* copy = at<Copy>(base, sections[index].VirtualAddress);
    return copy->mark == kMark && copy->size >= sizeof(Copy) ? copy : nullptr;
  }
  return nullptr;
}

template <typename Visit>
void for_each_other(Visit visit) {
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
  for (std::atomic<const Copy*>& place : g_others) {
    if (const Copy* other = place.load(std::memory_order_acquire)) other->forget(&kSelf);
  }
}

const Copy* maker_of(const void* pointer) {
  for (std::atomic<const Copy*>& place : g_others) {
    const Copy* other = place.load(std::memory_order_acquire);
    if (other != nullptr && other->owns(pointer)) return other;
  }
  return nullptr;
}

}  // namespace rh::copies
