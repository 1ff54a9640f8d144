// The executable memory of the process, and what is known of it, numbered in the order it was found in.
#pragma once

#include <cstdint>

#include "platform/linux/stacks/memory_map.h"

namespace rh::stacks {

struct Module {
  uint64_t start;
  uint64_t end;
  uint64_t file_offset;
  uint64_t device;
  uint64_t inode;
  uintptr_t image;   // where its file is mapped from the beginning on; 0: nowhere
  uintptr_t tables;  // its .eh_frame_hdr; 0: none
  bool there;        // still mapped
  bool seen;         // while the map is read

  bool holds(uintptr_t address) const { return address - start < end - start; }
  bool is(const Mapping& mapping) const {
    return start == mapping.start && end == mapping.end && file_offset == mapping.offset && device == mapping.device &&
           inode == mapping.inode;
  }
};

// Who is told of each new one; false: it must not be known yet. The build id is empty where there is none.
struct NoteModule {
  bool (*write)(void* context, uint32_t number, const Mapping& mapping, Piece build_id);  // null: nobody
  void* context;
};

// The build id of the ELF image that begins at `at`, which may be 0, read where it is mapped; empty when there is none.
inline constexpr size_t kMostBuildId = 64;
Piece build_id_of(uintptr_t at, char (&to)[kMostBuildId]);

// Calls `visit(mapping, image)` with all executable memory; `image`: where its file begins in memory, 0 where it does
// not. The mappings of a file follow each other.
template <typename Visit> void each_code(MemoryMap& map, Visit visit) {
  Mapping first{};
  for (Mapping mapping; map.next(mapping);) {
    if (mapping.offset == 0) first = mapping;
    const bool same = first.inode == mapping.inode && first.device == mapping.device &&
                      (mapping.inode != 0 || first.start == mapping.start);
    if (mapping.executable) visit(mapping, static_cast<uintptr_t>(same ? first.start : 0));
  }
}

// Zeroed, it is empty. Guarded by the lock of what it is part of.
class Modules {
 public:
  static constexpr uint32_t kMost = 8192;

  // kMost: none that is known.
  uint32_t find(uintptr_t pc);
  const Module& operator[](uint32_t number) const { return all_[number]; }

  // Reads the map anew. True when something is gone.
  bool refresh(const NoteModule& note);

  // The mapping that holds `address`, without its path.
  bool mapping_of(uintptr_t address, Mapping& found);

 private:
  uint32_t free_place(const NoteModule& note) const;
  void take(const NoteModule& note, const Mapping& mapping, uintptr_t image);

  Module all_[kMost];
  uint32_t count_;
  uint32_t last_;  // that was found
  char buffer_[kMapBuffer];
};

}  // namespace rh::stacks
