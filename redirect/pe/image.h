// The headers of an executable image: in the memory of another process, or of this one; or a file's, laid out as the
// loader would. No C library is called: this is part of reheap.dll too.
#pragma once

#include <windows.h>

#include <stddef.h>
#include <stdint.h>

namespace rh::pe {

struct Image {
  HANDLE process = nullptr;  // nullptr: this process, where nothing is read from `limit` on
  uintptr_t base = 0;
  uintptr_t limit = 0;
  DWORD size = 0;
  WORD machine = 0;          // IMAGE_FILE_MACHINE_…
  bool wide = false;         // PE32+
  WORD characteristics = 0;  // DLL characteristics: ASLR, control-flow guard, …
  // Addresses of the optional header, of the data directories and of the section headers.
  uintptr_t optional_header = 0;
  uintptr_t directories = 0;
  uintptr_t sections = 0;
  DWORD directory_count = 0;
  WORD section_count = 0;

  bool read_at(uintptr_t address, void* to, size_t length) const;
  bool read(DWORD offset, void* to, size_t length) const { return read_at(base + offset, to, length); }
  // Text ended by zero; cut when it is longer than fits.
  bool read_text(DWORD offset, char* to, size_t room) const;

  // One of the data directories; empty when the image has none of that number.
  IMAGE_DATA_DIRECTORY directory(DWORD number) const;
  bool has_directory(DWORD number) const { return directory(number).VirtualAddress != 0; }
};

// The image a process was started from. False when it cannot be read, as in a 64-bit process seen from a 32-bit one.
bool main_image(HANDLE process, Image& image);

// The image at an address.
bool image_at(HANDLE process, uintptr_t base, Image& image);

// The image that was laid out at an address; its headers are looked at.
bool image_within(uintptr_t base, uintptr_t limit, Image& image);

// Calls take(section) for each section header until it gives false. False when they cannot be read.
template <class Take> bool each_section(const Image& image, Take take) {
  for (WORD number = 0; number < image.section_count; ++number) {
    IMAGE_SECTION_HEADER section;
    if (!image.read_at(image.sections + number * sizeof section, &section, sizeof section)) return false;
    if (!take(section)) return true;
  }
  return true;
}

// Calls take(descriptor) for each import descriptor until it gives false. False when they cannot be read.
template <class Take> bool each_import(const Image& image, Take take) {
  DWORD at = image.directory(IMAGE_DIRECTORY_ENTRY_IMPORT).VirtualAddress;
  if (at == 0) return true;
  for (;; at += sizeof(IMAGE_IMPORT_DESCRIPTOR)) {
    IMAGE_IMPORT_DESCRIPTOR descriptor;
    if (!image.read(at, &descriptor, sizeof descriptor)) return false;
    if (descriptor.Name == 0 || !take(descriptor)) return true;
  }
}

// Calls take(name) for each function that a descriptor imports by name.
template <class Take> void each_function(const Image& image, const IMAGE_IMPORT_DESCRIPTOR& descriptor, Take take) {
  const DWORD width = image.wide ? 8 : 4;
  const uint64_t by_ordinal = image.wide ? IMAGE_ORDINAL_FLAG64 : IMAGE_ORDINAL_FLAG32;
  DWORD at = descriptor.OriginalFirstThunk != 0 ? descriptor.OriginalFirstThunk : descriptor.FirstThunk;
  for (;; at += width) {
    uint64_t entry = 0;
    char name[128];
    if (!image.read(at, &entry, width) || entry == 0) return;
    if ((entry & by_ordinal) != 0) continue;
    const DWORD hint_and_name = static_cast<DWORD>(entry);
    if (image.read_text(hint_and_name + sizeof(WORD), name, sizeof name)) take(name);
  }
}

enum class FileKind { program, library };

// Machine of the image file at `path`; 0 when it is no program, or no library.
WORD file_machine(const wchar_t* path, FileKind kind);

// The headers of some years do not name it.
constexpr WORD machine_arm64 = 0xAA64;

#if defined(__x86_64__) || defined(_M_X64)
constexpr WORD own_machine = IMAGE_FILE_MACHINE_AMD64;
#elif defined(__i386__) || defined(_M_IX86)
constexpr WORD own_machine = IMAGE_FILE_MACHINE_I386;
#else
constexpr WORD own_machine = machine_arm64;
#endif

}  // namespace rh::pe
