#include "image.h"

#include <winternl.h>

namespace rh::pe {
namespace {

// PEB.ImageBaseAddress: behind four bytes of flags, padded to a pointer, and one pointer.
constexpr size_t image_base_in_peb = 2 * sizeof(void*);

uintptr_t main_base(HANDLE process) {
  PROCESS_BASIC_INFORMATION basic;
  if (NtQueryInformationProcess(process, ProcessBasicInformation, &basic, sizeof basic, nullptr) != 0) return 0;
  const auto peb = reinterpret_cast<const char*>(basic.PebBaseAddress);
  uintptr_t base = 0;
  if (peb == nullptr || !ReadProcessMemory(process, peb + image_base_in_peb, &base, sizeof base, nullptr)) return 0;
  return base;
}

// What stands before the optional header.
struct NtHeaders {
  DWORD signature;
  IMAGE_FILE_HEADER file;
};

// What the two kinds of optional header have at the same place, and what they do not.
bool take_optional_header(Image& image) {
  const uintptr_t at = image.optional_header;
  WORD magic = 0;
  if (!image.read_at(at, &magic, sizeof magic)) return false;
  image.wide = magic == IMAGE_NT_OPTIONAL_HDR64_MAGIC;
  if (!image.wide && magic != IMAGE_NT_OPTIONAL_HDR32_MAGIC) return false;
  image.directories = at + (image.wide ? offsetof(IMAGE_OPTIONAL_HEADER64, DataDirectory)
                                       : offsetof(IMAGE_OPTIONAL_HEADER32, DataDirectory));
  static_assert(offsetof(IMAGE_OPTIONAL_HEADER64, SizeOfImage) == offsetof(IMAGE_OPTIONAL_HEADER32, SizeOfImage));
  static_assert(offsetof(IMAGE_OPTIONAL_HEADER64, DllCharacteristics) ==
                offsetof(IMAGE_OPTIONAL_HEADER32, DllCharacteristics));
  return image.read_at(at + offsetof(IMAGE_OPTIONAL_HEADER64, SizeOfImage), &image.size, sizeof image.size) &&
         image.read_at(at + offsetof(IMAGE_OPTIONAL_HEADER64, DllCharacteristics), &image.characteristics,
                       sizeof image.characteristics) &&
         image.read_at(image.directories - sizeof image.directory_count, &image.directory_count,
                       sizeof image.directory_count);
}

bool copy_within(const Image& image, uintptr_t address, void* to, size_t length) {
  if (address < image.base || address > image.limit || length > image.limit - address) return false;
  for (size_t at = 0; at < length; ++at) static_cast<char*>(to)[at] = reinterpret_cast<const char*>(address)[at];
  return true;
}

bool take_headers(Image& image) {
  IMAGE_DOS_HEADER dos;
  if (!image.read(0, &dos, sizeof dos) || dos.e_magic != IMAGE_DOS_SIGNATURE) return false;
  NtHeaders start;
  const DWORD at = static_cast<DWORD>(dos.e_lfanew);
  if (!image.read(at, &start, sizeof start) || start.signature != IMAGE_NT_SIGNATURE) return false;
  image.machine = start.file.Machine;
  image.section_count = start.file.NumberOfSections;
  image.optional_header = image.base + at + sizeof start;
  image.sections = image.optional_header + start.file.SizeOfOptionalHeader;
  return take_optional_header(image);
}

}  // namespace

bool Image::read_at(uintptr_t address, void* to, size_t length) const {
  if (process == nullptr) return copy_within(*this, address, to, length);
  SIZE_T done = 0;
  return ReadProcessMemory(process, reinterpret_cast<const void*>(address), to, length, &done) && done == length;
}

bool Image::read_text(DWORD offset, char* to, size_t room) const {
  // One by one: what follows the text need not be readable.
  for (size_t at = 0; at + 1 < room; ++at) {
    if (!read(offset + static_cast<DWORD>(at), to + at, 1)) return false;
    if (to[at] == 0) return true;
  }
  to[room - 1] = 0;
  return true;
}

IMAGE_DATA_DIRECTORY Image::directory(DWORD number) const {
  IMAGE_DATA_DIRECTORY found = {0, 0};
  if (number < directory_count && number < IMAGE_NUMBEROF_DIRECTORY_ENTRIES &&
      !read_at(directories + number * sizeof found, &found, sizeof found))
    found = {0, 0};
  return found;
}

bool image_at(HANDLE process, uintptr_t base, Image& image) {
  image.process = process;
  image.base = base;
  return take_headers(image);
}

bool image_within(uintptr_t base, uintptr_t limit, Image& image) {
  image.process = nullptr;
  image.base = base;
  image.limit = limit;
  return take_headers(image);
}

bool main_image(HANDLE process, Image& image) {
  const uintptr_t base = main_base(process);
  return base != 0 && image_at(process, base, image);
}

WORD file_machine(const wchar_t* path, FileKind kind) {
  const HANDLE file = CreateFileW(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                  OPEN_EXISTING, 0, nullptr);
  if (file == INVALID_HANDLE_VALUE) return 0;
  IMAGE_DOS_HEADER dos;
  NtHeaders start;
  DWORD done = 0;
  const bool is_image = ReadFile(file, &dos, sizeof dos, &done, nullptr) && done == sizeof dos &&
                        dos.e_magic == IMAGE_DOS_SIGNATURE &&
                        SetFilePointer(file, dos.e_lfanew, nullptr, FILE_BEGIN) != INVALID_SET_FILE_POINTER &&
                        ReadFile(file, &start, sizeof start, &done, nullptr) && done == sizeof start &&
                        start.signature == IMAGE_NT_SIGNATURE;
  CloseHandle(file);
  const bool is_library = is_image && (start.file.Characteristics & IMAGE_FILE_DLL) != 0;
  return is_image && is_library == (kind == FileKind::library) ? start.file.Machine : WORD{0};
}

}  // namespace rh::pe
