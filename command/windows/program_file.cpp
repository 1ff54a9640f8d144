#include "program_file.h"

#include "common/message.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace rh::command {
namespace {

constexpr DWORD kPage = 4096;

[[noreturn]] void malformed(const std::string& what) {
  throw Failure(exit_not_executable, "it is truncated or malformed: " + what);
}

bool is_power_of_two(DWORD number) { return number != 0 && (number & (number - 1)) == 0; }

std::string_view name_of(const IMAGE_SECTION_HEADER& section) {
  const auto* name = reinterpret_cast<const char*>(section.Name);
  return {name, strnlen(name, sizeof section.Name)};
}

// What of its data the loader maps: in whole pages, but no more than there is.
DWORD size_in_memory(const IMAGE_SECTION_HEADER& section) {
  return section.Misc.VirtualSize != 0 ? section.Misc.VirtualSize : section.SizeOfRawData;
}

}  // namespace

Extent data_of(const IMAGE_SECTION_HEADER& section) {
  return section.PointerToRawData == 0 ? Extent{} : Extent{section.PointerToRawData, section.SizeOfRawData};
}

ProgramFile::ProgramFile(std::string bytes) : bytes_(std::move(bytes)) {
  const auto base = reinterpret_cast<uintptr_t>(bytes_.data());
  if (!pe::image_within(base, base + bytes_.size(), image_))
    throw Failure(exit_not_executable, "it is no program for Windows");
  take_headers();
  take_sections();
  lay_out();
}

void ProgramFile::take_headers() {
  image_.read_at(image_.optional_header - sizeof file_header_, &file_header_, sizeof file_header_);
  constexpr size_t common = offsetof(OptionalHeader, SizeOfStackReserve);
  if (!image_.read_at(image_.optional_header, &optional_header_, common)) malformed("its headers end early");
  const OptionalHeader& header = optional_header_;
  if (image_.directory_count > IMAGE_NUMBEROF_DIRECTORY_ENTRIES ||
      directories_at() + image_.directory_count * sizeof(IMAGE_DATA_DIRECTORY) > section_headers_at())
    malformed("its directories do not fit into its headers");
  if (!is_power_of_two(header.SectionAlignment) || !is_power_of_two(header.FileAlignment) ||
      header.FileAlignment > header.SectionAlignment)
    malformed("its alignment is none");
  if (header.SizeOfHeaders > bytes_.size() || section_headers_end() > header.SizeOfHeaders)
    malformed("its headers end early");
}

void ProgramFile::take_sections() {
  const DWORD alignment = std::max(optional_header_.SectionAlignment, kPage);
  uint64_t next = rounded_up(optional_header_.SizeOfHeaders, alignment);
  sections_end_ = optional_header_.SizeOfHeaders;
  each_section(image_, [&](const IMAGE_SECTION_HEADER& section) {
    if (section.VirtualAddress != next) malformed("its sections do not follow each other");
    next = rounded_up(next + size_in_memory(section), alignment);
    const Extent data = data_of(section);
    if (data.size != 0 && (data.end() > bytes_.size() || data.begin < section_headers_end()))
      malformed("its section " + std::string(name_of(section)) + " is cut off");
    if (data.size != 0) sections_end_ = std::max(sections_end_, data.end());
    sections_.push_back(section);
    return true;
  });
  if (rounded_up(image_.size, alignment) != next || next > MAXLONG)
    malformed("its size in memory is not that of its sections");
}

void ProgramFile::lay_out() {
  const SIZE_T size = rounded_up(image_.size, kPage);
  memory_.reset(VirtualAlloc(nullptr, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
  auto* const to = static_cast<char*>(memory_.get());
  if (to == nullptr) throw Failure(exit_failed, "there is no memory to lay it out in");
  std::memcpy(to, bytes_.data(), optional_header_.SizeOfHeaders);
  for (const IMAGE_SECTION_HEADER& section : sections_) {
    const Extent data = data_of(section);
    const uint64_t length = std::min<uint64_t>(data.size, size_in_memory(section));
    if (length != 0) std::memcpy(to + section.VirtualAddress, bytes_.data() + data.begin, length);
  }
  const auto base = reinterpret_cast<uintptr_t>(to);
  pe::image_within(base, base + size, image_);
}

uint64_t ProgramFile::section_headers_end() const {
  return section_headers_at() + image_.section_count * sizeof(IMAGE_SECTION_HEADER);
}

const IMAGE_SECTION_HEADER* ProgramFile::section(std::string_view name) const {
  for (const IMAGE_SECTION_HEADER& section : sections_)
    if (name_of(section) == name) return &section;
  return nullptr;
}

const IMAGE_SECTION_HEADER* ProgramFile::section_at(DWORD offset) const {
  for (const IMAGE_SECTION_HEADER& section : sections_)
    if (offset >= section.VirtualAddress && offset - section.VirtualAddress < size_in_memory(section)) return &section;
  return nullptr;
}

Extent ProgramFile::certificates() const {
  // The one directory that tells a place in the file.
  const IMAGE_DATA_DIRECTORY found = image_.directory(IMAGE_DIRECTORY_ENTRY_SECURITY);
  return {found.VirtualAddress, found.Size};
}

Extent ProgramFile::symbols() const {
  constexpr uint64_t symbol_size = 18;
  Extent found = {file_header_.PointerToSymbolTable, file_header_.NumberOfSymbols * symbol_size};
  DWORD names = 0;
  if (found.begin == 0 || found.end() + sizeof names > bytes_.size()) return {};
  std::memcpy(&names, bytes_.data() + found.end(), sizeof names);
  found.size += names;
  return found.end() > bytes_.size() ? Extent{} : found;
}

}  // namespace rh::command
