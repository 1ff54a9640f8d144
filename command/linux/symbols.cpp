#include "symbols.h"

#include "early/elf_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>

namespace rh::command {
namespace {

struct KnownAllocator {
  std::string_view symbol;
  const char* name;
};

// A function that each of them defines, and nobody else.
constexpr std::array known_allocators = {
    KnownAllocator{"mallocx", "jemalloc"},
    KnownAllocator{"je_mallocx", "jemalloc"},
    KnownAllocator{"_rjem_mallocx", "jemalloc"},
    KnownAllocator{"mi_malloc", "mimalloc"},
    KnownAllocator{"tc_malloc", "tcmalloc"},
    KnownAllocator{"MallocExtension_Internal_GetStats", "tcmalloc"},
    KnownAllocator{"rpmalloc", "rpmalloc"},
    KnownAllocator{"sn_malloc", "snmalloc"},
    KnownAllocator{"sn_rust_alloc", "snmalloc"},
    KnownAllocator{"scalable_malloc", "TBB's allocator"},
    KnownAllocator{"__asan_init", "AddressSanitizer"},
    KnownAllocator{"__tsan_init", "ThreadSanitizer"},
    KnownAllocator{"__msan_init", "MemorySanitizer"},
    KnownAllocator{"runtime.mallocgc", "the Go runtime's heap"},
};

// The function that answers REHEAP_DOCTOR.
constexpr std::string_view reheap_symbol = "rh_report_json";

using Take = std::function<void(std::string_view)>;

// A structure of the file's at `offset`; nullopt past its end.
template <class T> std::optional<T> structure_at(std::string_view file, std::uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

std::string_view bytes_at(std::string_view file, std::uint64_t offset, std::uint64_t size) {
  return offset < file.size() ? file.substr(offset, size) : std::string_view();
}

template <class Symbol> void each_name(std::string_view symbols, std::string_view names, const Take& take) {
  for (std::uint64_t at = 0; auto symbol = structure_at<Symbol>(symbols, at); at += sizeof(Symbol)) {
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_name >= names.size()) continue;
    const std::string_view name = names.substr(symbol->st_name);
    take(name.substr(0, name.find('\0')));
  }
}

template <class Section, class Symbol> void each_symbol(std::string_view file, const ElfFile& elf, const Take& take) {
  const auto table = bytes_at(file, elf.section_headers, elf.section_count * sizeof(Section));
  for (std::uint64_t at = 0; auto section = structure_at<Section>(table, at); at += sizeof(Section)) {
    if (section->sh_type != SHT_SYMTAB && section->sh_type != SHT_DYNSYM) continue;
    const auto names = structure_at<Section>(table, std::uint64_t{section->sh_link} * sizeof(Section));
    if (!names) continue;
    each_name<Symbol>(bytes_at(file, section->sh_offset, section->sh_size),
                      bytes_at(file, names->sh_offset, names->sh_size), take);
  }
}

// Every symbol the file at `path` defines.
void each_defined(const std::string& path, const Take& take) {
  const ElfFile elf = read_elf(Str(path.c_str()));
  const std::string file = elf.section_count != 0 ? read_file(path) : std::string();
  if (elf.architecture.bits == 32)
    each_symbol<Elf32_Shdr, Elf32_Sym>(file, elf, take);
  else
    each_symbol<Elf64_Shdr, Elf64_Sym>(file, elf, take);
}

}  // namespace

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> known_allocators_in(const std::string& path) {
  std::vector<std::string> found;
  each_defined(path, [&found](std::string_view name) {
    for (const KnownAllocator& known : known_allocators)
      if (name == known.symbol && std::find(found.begin(), found.end(), known.name) == found.end())
        found.emplace_back(known.name);
  });
  return found;
}

bool is_reheap(const std::string& path) {
  bool found = false;
  each_defined(path, [&found](std::string_view name) { found = found || name == reheap_symbol; });
  return found;
}

}  // namespace rh::command
