// The file of a program: its bytes, and what they become when they are loaded.
#pragma once

#include "redirect/pe/image.h"

#include <memory>
#include <string>
#include <vector>

namespace rh::command {

// The headers' fields of either kind: they lie at the same place in both, up to this one's stack sizes.
using OptionalHeader = IMAGE_OPTIONAL_HEADER64;
static_assert(offsetof(IMAGE_OPTIONAL_HEADER64, DllCharacteristics) ==
              offsetof(IMAGE_OPTIONAL_HEADER32, DllCharacteristics));

// Part of a file.
struct Extent {
  uint64_t begin = 0;
  uint64_t size = 0;
  uint64_t end() const { return begin + size; }
};

// What a section has in the file. Where it says no place there is nothing, whatever size it says: it begins as zeros.
Extent data_of(const IMAGE_SECTION_HEADER& section);

// Checked to be whole and well formed as far as this says; the rest of it may be anything.
class ProgramFile {
 public:
  // Throws Failure where it is no image of a program or library for Windows that this can tell about.
  explicit ProgramFile(std::string bytes);

  const std::string& bytes() const { return bytes_; }
  // As the loader lays it out, before imports and relocations.
  const pe::Image& image() const { return image_; }

  const IMAGE_FILE_HEADER& file_header() const { return file_header_; }
  // Up to DllCharacteristics; what follows differs.
  const OptionalHeader& optional_header() const { return optional_header_; }
  const std::vector<IMAGE_SECTION_HEADER>& sections() const { return sections_; }
  const IMAGE_SECTION_HEADER* section(std::string_view name) const;
  // The one that an offset of the image lies in, or nullptr.
  const IMAGE_SECTION_HEADER* section_at(DWORD offset) const;

  // Places in the file.
  uint64_t optional_header_at() const { return image_.optional_header - image_.base; }
  uint64_t directories_at() const { return image_.directories - image_.base; }
  uint64_t section_headers_at() const { return image_.sections - image_.base; }
  uint64_t section_headers_end() const;

  // Where the data of the last section ends; behind it lies what the loader does not see.
  uint64_t sections_end() const { return sections_end_; }
  // The signature; empty when it is not signed.
  Extent certificates() const;
  // COFF symbols and their names.
  Extent symbols() const;

 private:
  void take_headers();
  void take_sections();
  void lay_out();

  struct Release {
    void operator()(void* memory) const { VirtualFree(memory, 0, MEM_RELEASE); }
  };

  std::string bytes_;
  IMAGE_FILE_HEADER file_header_ = {};
  OptionalHeader optional_header_ = {};
  std::vector<IMAGE_SECTION_HEADER> sections_;
  uint64_t sections_end_ = 0;
  std::unique_ptr<void, Release> memory_;
  pe::Image image_;
};

inline uint64_t rounded_up(uint64_t size, uint64_t alignment) { return (size + alignment - 1) & ~(alignment - 1); }

}  // namespace rh::command
