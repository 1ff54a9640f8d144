#include "library.h"

#include "imports.h"
#include "redirect/pe/image.h"

namespace rh::inject {
namespace {

constexpr DWORD kMostBytes = 256 << 20;

HANDLE open(const wchar_t* path) {
  return CreateFileW(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr, OPEN_EXISTING,
                     0, nullptr);
}

// The bytes of a file, read into memory of their own.
class Bytes {
 public:
  explicit Bytes(const wchar_t* path) {
    const HANDLE file = open(path);
    if (file == INVALID_HANDLE_VALUE) return;
    read(file);
    CloseHandle(file);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() {
    if (memory_ != nullptr) VirtualFree(memory_, 0, MEM_RELEASE);
  }

  const unsigned char* begin() const { return static_cast<const unsigned char*>(memory_); }
  DWORD size() const { return size_; }

 private:
  void read(HANDLE file) {
    LARGE_INTEGER size = {};
    if (!GetFileSizeEx(file, &size) || size.QuadPart == 0 || size.QuadPart > kMostBytes) return;
    memory_ = VirtualAlloc(nullptr, size.LowPart, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    if (memory_ != nullptr && !ReadFile(file, memory_, size.LowPart, &size_, nullptr)) size_ = 0;
  }

  void* memory_ = nullptr;
  DWORD size_ = 0;
};

bool is_mark(const unsigned char* at) {
  for (size_t index = 0; index < sizeof kMark; ++index)
    if (at[index] != static_cast<unsigned char>(kMark[index])) return false;
  return true;
}

bool holds_mark(const Bytes& bytes) {
  for (size_t at = 0; at + sizeof kMark <= bytes.size(); ++at)
    if (is_mark(bytes.begin() + at)) return true;
  return false;
}

// Whether there is all that the section headers tell of.
bool has_all_sections(const pe::Image& file, DWORD size) {
  bool whole = true;
  const bool read = each_section(file, [&](const IMAGE_SECTION_HEADER& section) {
    const uint64_t end = uint64_t{section.PointerToRawData} + section.SizeOfRawData;
    whole = section.SizeOfRawData == 0 || end <= size;
    return whole;
  });
  return read && whole;
}

// Where in the file that lies which is loaded at an offset of the image; 0 when nothing does.
DWORD place_of(const pe::Image& file, DWORD offset) {
  DWORD place = 0;
  each_section(file, [&](const IMAGE_SECTION_HEADER& section) {
    const DWORD within = offset - section.VirtualAddress;
    if (offset >= section.VirtualAddress && within < section.SizeOfRawData) place = section.PointerToRawData + within;
    return place == 0;
  });
  return place;
}

// Linkers say it in an entry among those for debuggers.
bool is_for_shadow_stacks(const pe::Image& file) {
  constexpr DWORD extended_characteristics = 20, compatible = 1;
  const IMAGE_DATA_DIRECTORY entries = file.directory(IMAGE_DIRECTORY_ENTRY_DEBUG);
  const DWORD begin = place_of(file, entries.VirtualAddress);
  if (begin == 0) return false;
  IMAGE_DEBUG_DIRECTORY entry;
  for (DWORD at = 0; at + sizeof entry <= entries.Size && file.read(begin + at, &entry, sizeof entry);
       at += sizeof entry) {
    DWORD bits = 0;
    if (entry.Type == extended_characteristics && file.read(entry.PointerToRawData, &bits, sizeof bits))
      return (bits & compatible) != 0;
  }
  return false;
}

bool is_whole(const Bytes& bytes, const pe::Image& file) {
  const auto base = reinterpret_cast<uintptr_t>(bytes.begin());
  if (!has_all_sections(file, bytes.size())) return false;
  static_assert(offsetof(IMAGE_OPTIONAL_HEADER64, CheckSum) == offsetof(IMAGE_OPTIONAL_HEADER32, CheckSum));
  const uintptr_t at = file.optional_header + offsetof(IMAGE_OPTIONAL_HEADER64, CheckSum);
  DWORD expected = 0;
  if (!file.read_at(at, &expected, sizeof expected)) return false;
  return expected == 0 || expected == checksum(bytes.begin(), bytes.size(), at - base);
}

}  // namespace

LibraryFile look_at_library(const wchar_t* path) {
  const Bytes bytes(path);
  pe::Image file;
  const auto base = reinterpret_cast<uintptr_t>(bytes.begin());
  if (!image_within(base, base + bytes.size(), file)) return {};
  return {.whole = is_whole(bytes, file),
          .answers = holds_mark(bytes),
          .guarded = (file.characteristics & IMAGE_DLLCHARACTERISTICS_GUARD_CF) != 0,
          .for_shadow_stacks = is_for_shadow_stacks(file)};
}

DWORD checksum(const void* file, size_t size, size_t checksum_at) {
  const auto* const bytes = static_cast<const unsigned char*>(file);
  uint64_t sum = 0;
  for (size_t at = 0; at < size; at += 2) {
    if (at >= checksum_at && at < checksum_at + sizeof(DWORD)) continue;
    const unsigned high = at + 1 < size ? bytes[at + 1] : 0u;
    sum += bytes[at] | high << 8;
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<DWORD>(sum + size);
}

bool FileIdentity::operator==(const FileIdentity& other) const {
  return volume == other.volume && index_high == other.index_high && index_low == other.index_low &&
         size_high == other.size_high && size_low == other.size_low &&
         written.dwHighDateTime == other.written.dwHighDateTime && written.dwLowDateTime == other.written.dwLowDateTime;
}

FileIdentity identity_of(const wchar_t* path) {
  FileIdentity identity = {};
  BY_HANDLE_FILE_INFORMATION told;
  const HANDLE file = open(path);
  if (file == INVALID_HANDLE_VALUE) return identity;
  if (GetFileInformationByHandle(file, &told))
    identity = {told.dwVolumeSerialNumber, told.nFileIndexHigh, told.nFileIndexLow,
                told.nFileSizeHigh,        told.nFileSizeLow,   told.ftLastWriteTime};
  CloseHandle(file);
  return identity;
}

}  // namespace rh::inject
