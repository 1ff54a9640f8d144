// Where libreheap.so lies.
#pragma once

#include "common/refusal.h"
#include "common/settings.h"
#include "elf_file.h"

namespace rh::command {

struct Library {
  Str path;  // absolute, and such that LD_PRELOAD can carry it
  Architecture architecture;
};

struct Libraries {
  static constexpr std::size_t most = 4;  // one an architecture
  Library found[most];                    // in the order of the places they were looked for in
  std::size_t count = 0;
  bool named = false;  // by --library or REHEAP_LIBRARY: no other is looked for

  // The library for programs of this architecture, or nullptr.
  const Library* for_architecture(const Architecture& architecture) const;
};

// `variable` is REHEAP_LIBRARY's value, nullptr when not given. Where neither it nor the settings name a
// file counts what lies beside the command: ../lib/libreheap.so and its like, in a build tree as in an
// installation. The search ends at the first that fits `wanted`; nullptr wants all there are.
// Refused when a named file is no library that could be preloaded, or when there is none at all.
Refusal find_libraries(const Settings& settings, const char* variable, const Architecture* wanted,
                       Libraries& libraries);

// The running command's own file; empty when /proc is not there.
Str command_path();

}  // namespace rh::command
