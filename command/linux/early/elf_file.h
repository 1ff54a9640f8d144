// What an ELF file says about itself, as far as it decides whether a library can be preloaded.
#pragma once

#include "common/text.h"

#include <cstdint>

namespace rh::command {

inline constexpr bool native_little_endian = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

// What has to agree between a program and a library that is to be loaded into it.
struct Architecture {
  std::uint8_t bits = 0;  // 32 or 64
  bool little_endian = true;
  std::uint16_t machine = 0;  // EM_…

  constexpr bool operator==(const Architecture&) const = default;
};

Str name_of(const Architecture& architecture);  // "x86-64, 64-bit"

// Of a file in the other byte order only the architecture is read.
struct ElfFile {
  bool valid = false;  // one that a kernel would start or a loader load; else the rest says nothing
  Architecture architecture;
  bool shared_object = false;         // ET_DYN: a library or a position-independent program
  bool dynamic = false;               // has a dynamic section
  Str loader;                         // the one it asks for; empty when it is started without one
  std::uint64_t section_headers = 0;  // where they begin in the file
  std::size_t section_count = 0;
};

// Of a file opened by kernel::open.
ElfFile read_elf(long file);

// Not valid when it cannot be opened.
ElfFile read_elf(Str path);

}  // namespace rh::command
