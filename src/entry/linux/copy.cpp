// This copy of the library, and how it finds others: by the notes of the images that the loader lists.
#include <link.h>

#include "entry/copies.h"
#include "entry/rules.h"
#include "platform/platform.h"

// Weak: a statically linked program may have none.
extern "C" [[gnu::weak]] int dl_iterate_phdr(int (*visit)(dl_phdr_info*, size_t, void*), void* data);

// An ELF note that is called "reheap" and holds how far from itself the copy lies.
__asm__(".pushsection .note.reheap,\"a\",%note\n"
        ".balign 4\n"
        ".long 7, 4, 1\n"
        ".asciz \"reheap\"\n"
        ".balign 4\n"
        ".long rh_this_copy - .\n"
        ".popsection\n");

namespace rh::copies {

namespace {

size_t own_bytes_from(const void* block) { return rules::usable_size(block); }

void free_own(void* block) { rules::free(block, rules::Maker::any); }

}  // namespace

// By the name that the note calls it by.
extern "C" {
RH_HIDDEN extern const Copy rh_this_copy;
[[gnu::used]] constinit const Copy rh_this_copy = describe_by(own_bytes_from, free_own);
}

namespace {

constexpr char kName[] = "reheap";

using Note = ElfW(Nhdr);

// Of a length, as it lies in a note.
size_t padded(size_t length) { return align_up(length, 4); }

// The copy that a note names, or null.
const Copy* copy_of(const Note* note) {
  const char* name = reinterpret_cast<const char*>(note + 1);
  if (note->n_namesz != sizeof kName || note->n_descsz != sizeof(int32_t)) return nullptr;
  if (__builtin_memcmp(name, kName, sizeof kName) != 0) return nullptr;
  const char* content = name + padded(sizeof kName);
  int32_t distance = 0;
  __builtin_memcpy(&distance, content, sizeof distance);
  const auto* copy = reinterpret_cast<const Copy*>(content + distance);
  return is_copy(copy) ? copy : nullptr;
}

// None when a length is longer than what is left of the segment.
const Copy* copy_among(uintptr_t at, size_t length) {
  while (length >= sizeof(Note)) {
    const auto* note = reinterpret_cast<const Note*>(at);
    const size_t room = length - sizeof(Note);
    if (note->n_namesz > room || note->n_descsz > room) return nullptr;
    const size_t whole = sizeof(Note) + padded(note->n_namesz) + padded(note->n_descsz);
    if (whole > length) return nullptr;
    if (const Copy* copy = copy_of(note)) return copy;
    at += whole;
    length -= whole;
  }
  return nullptr;
}

int visit_image(dl_phdr_info* image, size_t, void* visit) {
  for (size_t index = 0; index < image->dlpi_phnum; ++index) {
    const ElfW(Phdr)& segment = image->dlpi_phdr[index];
    if (segment.p_type != PT_NOTE || segment.p_align > 4) continue;
    const Copy* copy = copy_among(image->dlpi_addr + segment.p_vaddr, segment.p_memsz);
    if (copy != nullptr && copy != &rh_this_copy) (*static_cast<void (**)(const Copy*)>(visit))(copy);
  }
  return 0;
}

}  // namespace

const Copy* this_copy() { return &rh_this_copy; }

void for_each_other(void (*visit)(const Copy* other)) {
  if (dl_iterate_phdr == nullptr || platform::is_under_thread_sanitizer()) return;
  dl_iterate_phdr(visit_image, reinterpret_cast<void*>(&visit));
}

}  // namespace rh::copies
