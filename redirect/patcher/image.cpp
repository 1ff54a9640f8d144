#include "image.h"

#include <windows.h>

namespace rh::redirect {

namespace {

const IMAGE_NT_HEADERS* headers_of(uintptr_t base) {
  const auto* dos = reinterpret_cast<const IMAGE_DOS_HEADER*>(base);
  if (dos->e_magic != IMAGE_DOS_SIGNATURE) return nullptr;
  const auto* headers =
      reinterpret_cast<const IMAGE_NT_HEADERS*>(base + static_cast<uintptr_t>(dos->e_lfanew));
  if (headers->Signature != IMAGE_NT_SIGNATURE) return nullptr;
  return headers->OptionalHeader.Magic == IMAGE_NT_OPTIONAL_HDR_MAGIC ? headers : nullptr;
}

// As strcmp: the order of names in an export table.
int compare(const char* a, const char* b) {
  while (*a != 0 && *a == *b) {
    ++a;
    ++b;
  }
  return static_cast<unsigned char>(*a) - static_cast<unsigned char>(*b);
}

}  // namespace

Image::Image(const void* base) {
  uintptr_t begin = reinterpret_cast<uintptr_t>(base);
  if (const IMAGE_NT_HEADERS* headers = headers_of(begin)) {
    whole_ = {begin, begin + headers->OptionalHeader.SizeOfImage};
  }
}

Image::Directory Image::directory(unsigned index) const {
  const IMAGE_OPTIONAL_HEADER& header = headers_of(whole_.begin)->OptionalHeader;
  if (index >= header.NumberOfRvaAndSizes) return {};
  return {header.DataDirectory[index].VirtualAddress, header.DataDirectory[index].Size};
}

uint32_t Image::export_address(const char* name) const {
  Directory exports = directory(IMAGE_DIRECTORY_ENTRY_EXPORT);
  if (exports.size == 0) return 0;
  const auto* table = at<IMAGE_EXPORT_DIRECTORY>(exports.address);
  const auto* names = at<uint32_t>(table->AddressOfNames);
  uint32_t low = 0;
  uint32_t high = table->NumberOfNames;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    int order = compare(name, at<char>(names[middle]));
    if (order == 0) {
      uint16_t ordinal = at<uint16_t>(table->AddressOfNameOrdinals)[middle];
      uint32_t address = at<uint32_t>(table->AddressOfFunctions)[ordinal];
      // Within the directory lies the name of another DLL's function.
      return address - exports.address < exports.size ? 0 : address;
    }
    if (order < 0) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return 0;
}

uint8_t* Image::function(const char* name) const {
  uint32_t address = export_address(name);
  if (address == 0 || code_section(whole_.begin + address).end == 0) return nullptr;
  return reinterpret_cast<uint8_t*>(whole_.begin + address);
}

Range Image::code_section(uintptr_t address) const {
  const IMAGE_NT_HEADERS* headers = headers_of(whole_.begin);
  const auto* section = reinterpret_cast<const IMAGE_SECTION_HEADER*>(
      reinterpret_cast<uintptr_t>(&headers->OptionalHeader) +
      headers->FileHeader.SizeOfOptionalHeader);
  for (unsigned i = 0; i < headers->FileHeader.NumberOfSections; ++i) {
    uintptr_t begin = whole_.begin + section[i].VirtualAddress;
    Range range = {begin, begin + section[i].Misc.VirtualSize};
    bool code = (section[i].Characteristics & IMAGE_SCN_MEM_EXECUTE) != 0;
    if (code && range.holds(address)) return range;
  }
  return {};
}

Range Image::extent(const uint8_t* entry) const {
  uintptr_t begin = reinterpret_cast<uintptr_t>(entry);
  Range range = {begin, code_section(begin).end};
#if defined(__x86_64__)
  Directory unwind = directory(IMAGE_DIRECTORY_ENTRY_EXCEPTION);
  const auto* functions = at<RUNTIME_FUNCTION>(unwind.address);
  uint32_t wanted = static_cast<uint32_t>(begin - whole_.begin);
  uint32_t low = 0;
  uint32_t high = static_cast<uint32_t>(unwind.size / sizeof(RUNTIME_FUNCTION));
  while (low < high) {  // the first that begins behind `wanted`
    uint32_t middle = low + (high - low) / 2;
    if (functions[middle].BeginAddress <= wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low < unwind.size / sizeof(RUNTIME_FUNCTION))
    range.end = whole_.begin + functions[low].BeginAddress;
#endif
  return range;
}

}  // namespace rh::redirect
