#include "image.h"

namespace rh::redirect {

namespace {

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
  const auto begin = reinterpret_cast<uintptr_t>(base);
  if (image_within(begin, UINTPTR_MAX, headers_) && headers_.wide == (sizeof(void*) == 8))
    whole_ = {begin, begin + headers_.size};
}

uint32_t Image::export_address(const char* name) const {
  const IMAGE_DATA_DIRECTORY exports = headers_.directory(IMAGE_DIRECTORY_ENTRY_EXPORT);
  if (exports.Size == 0) return 0;
  const auto* table = at<IMAGE_EXPORT_DIRECTORY>(exports.VirtualAddress);
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
      return address - exports.VirtualAddress < exports.Size ? 0 : address;
    }
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return 0;
}

uint8_t* Image::function(const char* name) const {
  uint32_t address = export_address(name);
  if (address == 0 || code_section(whole_.begin + address).end == 0) return nullptr;
  return reinterpret_cast<uint8_t*>(whole_.begin + address);
}

Range Image::code_section(uintptr_t address) const {
  Range found = {};
  each_section(headers_, [&](const IMAGE_SECTION_HEADER& section) {
    const uintptr_t begin = whole_.begin + section.VirtualAddress;
    const Range range = {begin, begin + section.Misc.VirtualSize};
    const bool code = (section.Characteristics & IMAGE_SCN_MEM_EXECUTE) != 0;
    if (code && range.holds(address)) found = range;
    return found.end == 0;
  });
  return found;
}

Range Image::extent(const uint8_t* entry) const {
  uintptr_t begin = reinterpret_cast<uintptr_t>(entry);
  Range range = {begin, code_section(begin).end};
#if defined(__x86_64__)
  const IMAGE_DATA_DIRECTORY unwind = headers_.directory(IMAGE_DIRECTORY_ENTRY_EXCEPTION);
  const auto* functions = at<RUNTIME_FUNCTION>(unwind.VirtualAddress);
  uint32_t wanted = static_cast<uint32_t>(begin - whole_.begin);
  uint32_t low = 0;
  uint32_t high = static_cast<uint32_t>(unwind.Size / sizeof(RUNTIME_FUNCTION));
  while (low < high) {  // the first that begins behind `wanted`
    uint32_t middle = low + (high - low) / 2;
    if (functions[middle].BeginAddress <= wanted)
      low = middle + 1;
    else
      high = middle;
  }
  if (low < unwind.Size / sizeof(RUNTIME_FUNCTION)) range.end = whole_.begin + functions[low].BeginAddress;
#endif
  return range;
}

}  // namespace rh::redirect
