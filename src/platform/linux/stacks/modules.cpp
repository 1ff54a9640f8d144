#include "platform/linux/stacks/modules.h"

#include <elf.h>

#include "platform/linux/stacks/peek.h"

namespace rh::stacks {
namespace {

// What an ELF image says of itself, read where it is mapped.
class Image {
 public:
  explicit Image(uintptr_t at) : at_(at) {
    good_ = at != 0 && peek(at, head_) && __builtin_memcmp(head_.e_ident, ELFMAG, SELFMAG) == 0 &&
            head_.e_ident[EI_CLASS] == ELFCLASS64 && head_.e_phentsize == sizeof(Elf64_Phdr);
    Elf64_Phdr first;
    good_ = good_ && find(PT_LOAD, 0, first);
    bias_ = good_ ? at - (first.p_vaddr - first.p_offset) : 0;
  }

  uintptr_t tables() const {
    Elf64_Phdr part;
    return find(PT_GNU_EH_FRAME, 0, part) ? bias_ + part.p_vaddr : 0;
  }

  Piece build_id(char (&to)[kMostBuildId]) const {
    Elf64_Phdr part;
    for (unsigned nth = 0; find(PT_NOTE, nth, part); ++nth) {
      const size_t bytes = find_build_id(bias_ + part.p_vaddr, part.p_memsz, to);
      if (bytes != 0) return {to, bytes};
    }
    return {};
  }

 private:
  bool find(uint32_t type, unsigned nth, Elf64_Phdr& part) const {
    constexpr unsigned kMostParts = 64;
    for (unsigned i = 0; good_ && i < head_.e_phnum && i < kMostParts; ++i) {
      if (!peek(at_ + head_.e_phoff + i * sizeof part, part)) return false;
      if (part.p_type == type && nth-- == 0) return true;
    }
    return false;
  }

  static size_t find_build_id(uintptr_t at, uint64_t bytes, char (&to)[kMostBuildId]) {
    const uintptr_t end = at + (bytes < 4096 ? bytes : 4096);
    Elf64_Nhdr note;
    while (end - at >= sizeof note && peek(at, note)) {
      const uint64_t name = (uint64_t{note.n_namesz} + 3) & ~uint64_t{3},
                     text = (uint64_t{note.n_descsz} + 3) & ~uint64_t{3};
      if (name + text > end - at - sizeof note) return 0;
      char owner[4];
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof owner && note.n_descsz <= kMostBuildId &&
          peek(at + sizeof note, owner) && __builtin_memcmp(owner, "GNU", sizeof owner) == 0)
        return peek(at + sizeof note + name, to, note.n_descsz) ? note.n_descsz : 0;
      at += sizeof note + name + text;
    }
    return 0;
  }

  uintptr_t at_;
  uintptr_t bias_ = 0;
  Elf64_Ehdr head_;
  bool good_;
};

}  // namespace

uint32_t Modules::find(uintptr_t pc) {
  auto is_it = [&](uint32_t number) { return all_[number].there && all_[number].holds(pc); };
  if (is_it(last_)) return last_;
  for (uint32_t i = count_; i-- != 0;)
    if (is_it(i)) return last_ = i;
  return kMost;
}

// Where nobody noted its number, what is gone makes room.
uint32_t Modules::free_place(const NoteModule& note) const {
  if (count_ != kMost || note.write) return count_;
  uint32_t place = 0;
  while (place != kMost && all_[place].there) ++place;
  return place;
}

void Modules::take(const NoteModule& note, const Mapping& mapping, uintptr_t image_at) {
  for (uint32_t i = 0; i != count_; ++i) {
    if (!all_[i].there || !all_[i].is(mapping)) continue;
    all_[i].seen = true;
    return;
  }
  const uint32_t place = free_place(note);
  if (place == kMost) return;
  const Image image(image_at);
  char id[kMostBuildId];
  if (note.write && !note.write(note.context, place, mapping, image.build_id(id))) return;
  all_[place] = {mapping.start, mapping.end, mapping.offset, mapping.device, mapping.inode, image_at, image.tables(),
                 true,          true};
  count_ += place == count_;
}

Piece build_id_of(uintptr_t at, char (&to)[kMostBuildId]) { return Image(at).build_id(to); }

bool Modules::refresh(const NoteModule& note) {
  for (uint32_t i = 0; i != count_; ++i) all_[i].seen = false;
  MemoryMap map(buffer_, sizeof buffer_);
  each_code(map, [&](const Mapping& mapping, uintptr_t image) { take(note, mapping, image); });
  bool gone = false;
  for (uint32_t i = 0; i != count_; ++i) {
    gone = gone || (all_[i].there && !all_[i].seen);
    all_[i].there = all_[i].seen;
  }
  return gone;
}

bool Modules::mapping_of(uintptr_t address, Mapping& found) {
  MemoryMap map(buffer_, sizeof buffer_);
  while (map.next(found))
    if (address - found.start < found.end - found.start) return true;
  return false;
}

}  // namespace rh::stacks
