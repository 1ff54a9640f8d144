// The executable memory of the process, and what is known of it: numbered for the trace, in the order it was found in.
#pragma once

#include <cstdint>

#include "linux/stacks/memory_map.h"
#include "stream/stream.h"

namespace recorder {

struct Module {
  uint64_t start;
  uint64_t end;
  uint64_t file_offset;
  uint64_t device;
  uint64_t inode;
  uintptr_t tables;  // its .eh_frame_hdr; 0: none
  bool there;        // still mapped
  bool seen;         // while the map is read
};

// Zeroed, it is empty. Guarded by the lock of what it is part of.
class Modules {
 public:
  static constexpr uint32_t kMost = 8192;

  // kMost: none that is known.
  uint32_t find(uintptr_t pc) const;
  const Module& operator[](uint32_t number) const { return all_[number]; }

  // Reads the map anew, and describes what is new in the trace. True when something is gone.
  bool refresh(Stream& stream);

  // The mapping that holds `address`, without its path.
  bool mapping_of(uintptr_t address, Mapping& found);

 private:
  void take(Stream& stream, const Mapping& mapping, uintptr_t image);

  Module all_[kMost];
  uint32_t count_;
  char buffer_[kMapBuffer];
};

}  // namespace recorder
