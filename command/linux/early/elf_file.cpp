#include "elf_file.h"

#include "kernel.h"

#include <elf.h>

namespace rh::command {
namespace {

constexpr std::size_t longest_loader = 4096;  // PATH_MAX
constexpr std::size_t most_segments = 64;     // programs have about a dozen

struct Elf32 {
  using Header = Elf32_Ehdr;
  using Segment = Elf32_Phdr;
  using Section = Elf32_Shdr;
};

struct Elf64 {
  using Header = Elf64_Ehdr;
  using Segment = Elf64_Phdr;
  using Section = Elf64_Shdr;
};

std::uint16_t swapped(std::uint16_t value) { return static_cast<std::uint16_t>(value << 8 | value >> 8); }

Str read_loader(long file, std::uint64_t offset, std::uint64_t size) {
  if (size == 0 || size > longest_loader) return {};
  auto* text = static_cast<char*>(keep(size + 1));
  if (!text) return {};
  text[kernel::read(file, offset, text, size)] = '\0';
  return Str(static_cast<const char*>(text));
}

template <class Elf> void read_segments(long file, const typename Elf::Header& header, ElfFile& elf) {
  using Segment = typename Elf::Segment;
  Segment segments[most_segments];
  elf.valid = header.e_phentsize == sizeof(Segment) && header.e_phnum <= most_segments;
  if (!elf.valid) return;
  const std::size_t count =
      kernel::read(file, header.e_phoff, segments, header.e_phnum * sizeof(Segment)) / sizeof(Segment);
  elf.valid = count == header.e_phnum;
  for (std::size_t at = 0; at < count; ++at) {
    if (segments[at].p_type == PT_DYNAMIC) elf.dynamic = true;
    if (segments[at].p_type == PT_INTERP) elf.loader = read_loader(file, segments[at].p_offset, segments[at].p_filesz);
  }
}

template <class Elf> void read_as(long file, ElfFile& elf) {
  typename Elf::Header header;
  elf.valid = kernel::read(file, 0, &header, sizeof header) == sizeof header;
  if (!elf.valid) return;
  const bool native = elf.architecture.little_endian == native_little_endian;
  elf.architecture.machine = native ? header.e_machine : swapped(header.e_machine);
  const std::uint16_t type = native ? header.e_type : swapped(header.e_type);
  elf.shared_object = type == ET_DYN;
  elf.valid = type == ET_DYN || type == ET_EXEC;
  // The other byte order is a foreign machine: nothing more of it is asked.
  if (!native || !elf.valid) return;
  read_segments<Elf>(file, header, elf);
  if (header.e_shentsize != sizeof(typename Elf::Section)) return;
  elf.section_headers = header.e_shoff;
  elf.section_count = header.e_shnum;
}

Str machine_name(std::uint16_t machine) {
  switch (machine) {
  case EM_386: return "x86";
  case EM_X86_64: return "x86-64";
  case EM_ARM: return "ARM";
  case EM_AARCH64: return "AArch64";
  case EM_RISCV: return "RISC-V";
  case EM_PPC64: return "POWER";
  case EM_S390: return "s390";
  case EM_MIPS: return "MIPS";
  default: return join({"machine ", decimal(machine)});
  }
}

}  // namespace

Str name_of(const Architecture& architecture) {
  return join({machine_name(architecture.machine), architecture.bits == 32 ? ", 32-bit" : ", 64-bit",
               architecture.little_endian ? "" : ", big-endian"});
}

ElfFile read_elf(long file) {
  ElfFile elf;
  char identity[EI_NIDENT];
  const bool whole = kernel::read(file, 0, identity, sizeof identity) == sizeof identity;
  if (!whole || !Str(identity, SELFMAG).starts_with(ELFMAG)) return elf;
  elf.architecture.bits = identity[EI_CLASS] == ELFCLASS32 ? 32 : 64;
  elf.architecture.little_endian = identity[EI_DATA] != ELFDATA2MSB;
  if (elf.architecture.bits == 32)
    read_as<Elf32>(file, elf);
  else
    read_as<Elf64>(file, elf);
  return elf;
}

ElfFile read_elf(Str path) {
  const long file = kernel::open(path.data);
  if (file < 0) return {};
  const ElfFile elf = read_elf(file);
  kernel::close(file);
  return elf;
}

}  // namespace rh::command
