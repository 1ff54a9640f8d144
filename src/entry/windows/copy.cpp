// This copy of the library, and how it finds others: by the sections of the images that the loader lists.
#include "entry/copies.h"
#include "entry/windows/blocks.h"
#include "platform/windows/system.h"

#include <winternl.h>

extern "C" __declspec(dllimport) PPEB NTAPI RtlGetCurrentPeb(void);

namespace rh::copies {

namespace {

size_t own_bytes_from(const void* pointer) {
  if (Region* region = regions::find(pointer)) return rules::asked_in_region(region, pointer, "realloc");
  return blocks::bytes_from(pointer, "realloc");
}

void free_own(void* pointer) {
  if (rules::free_in_region(pointer)) return;
  void* block = blocks::start_of(pointer, "free");
  if constexpr (kHardened)
    blocks::free(block, rules::Maker::any);
  else
    rh::deallocate(block);
}

__attribute__((section(".reheap"), used)) constinit const Copy kThis = describe_by(own_bytes_from, free_own);

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
    return is_copy(copy) ? copy : nullptr;
  }
  return nullptr;
}

}  // namespace

const Copy* this_copy() { return &kThis; }

const Copy* copy_in_program() { return copy_in(GetModuleHandleW(nullptr)); }

void for_each_other(void (*visit)(const Copy* other)) {
  const LIST_ENTRY* list = &RtlGetCurrentPeb()->Ldr->InMemoryOrderModuleList;
  for (const LIST_ENTRY* entry = list->Flink; entry != list; entry = entry->Flink) {
    constexpr size_t kLinks = offsetof(LDR_DATA_TABLE_ENTRY, InMemoryOrderLinks);
    const auto* module = at<LDR_DATA_TABLE_ENTRY>(entry, 0 - kLinks);
    const Copy* copy = copy_in(module->DllBase);
    if (copy != nullptr && copy != &kThis) visit(copy);
  }
}

}  // namespace rh::copies
