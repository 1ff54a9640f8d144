// The calling thread's stack, as the system's own unwinder finds it: it takes no lock of the loader's and does not
// allocate. On 32-bit x86 it follows frame pointers, and functions that keep none are left out.
#include "platform/platform.h"
#include "platform/windows/system.h"

#include <psapi.h>

// The linker's: where the image begins that this is part of.
extern "C" const IMAGE_DOS_HEADER __ImageBase;

namespace rh::platform {

namespace {

// How far the image goes that begins there: its headers are there, too, as long as it is.
uintptr_t end_of_image(uintptr_t base) {
  const auto* dos = reinterpret_cast<const IMAGE_DOS_HEADER*>(base);
  const auto* headers = reinterpret_cast<const IMAGE_NT_HEADERS*>(base + static_cast<size_t>(dos->e_lfanew));
  return base + headers->OptionalHeader.SizeOfImage;
}

// Linked into the program, this code cannot be told from the rest of it.
unsigned count_own(void* const* code, unsigned count) {
  const auto base = reinterpret_cast<uintptr_t>(&__ImageBase);
  if (image_address() == base) return 0;
  const uintptr_t size = end_of_image(base) - base;
  unsigned own = 0;
  while (own != count && reinterpret_cast<uintptr_t>(code[own]) - base < size) ++own;
  return own;
}

}  // namespace

unsigned stack(uintptr_t* frames, unsigned most) {
  KeepLastError keep;
  void* found[kMostFrames];
  const unsigned count = RtlCaptureStackBackTrace(0, kMostFrames, found, nullptr);
  unsigned kept = 0;
  // Wine goes on beyond the first function of a thread.
  for (unsigned i = count_own(found, count); i < count && kept != most && found[i] != nullptr; ++i)
    frames[kept++] = reinterpret_cast<uintptr_t>(found[i]);
  return kept;
}

// Asked of the system and not of the loader, whose lock another thread may hold that never comes back.
bool find_code(uintptr_t address, CodePlace* place) {
  KeepLastError keep;
  MEMORY_BASIC_INFORMATION memory = {};
  if (VirtualQuery(pointer_to(address), &memory, sizeof(memory)) == 0 || memory.Type != MEM_IMAGE) return false;
  wchar_t path[MAX_PATH];
  DWORD length = K32GetMappedFileNameW(GetCurrentProcess(), pointer_to(address), path, MAX_PATH);
  const wchar_t* name = path + length;
  while (name != path && name[-1] != L'\\') --name;
  int rest = static_cast<int>(path + length - name);
  int written = WideCharToMultiByte(CP_UTF8, 0, name, rest, place->file, CodePlace::kMostName - 1, nullptr, nullptr);
  place->file[written] = 0;
  place->offset = address - reinterpret_cast<uintptr_t>(memory.AllocationBase);
  return written != 0;
}

namespace {

// What `path` goes on with behind `beginning`; null if it does not begin so.
const wchar_t* behind(const wchar_t* path, const wchar_t* beginning) {
  while (*beginning != 0 && *path == *beginning) ++path, ++beginning;
  return *beginning == 0 ? path : nullptr;
}

// The file of an image, as programs name it; without a letter for its drive, as the system does. Asked of the system,
// as find_code. Longer paths are left out.
struct ModulePath {
  wchar_t wide[512];
  char text[3 * 512];
  int length;

  explicit ModulePath(uintptr_t image) : wide{}, text{}, length(0) {
    constexpr DWORD kRoom = sizeof(wide) / sizeof(wide[0]);
    const DWORD got = K32GetMappedFileNameW(GetCurrentProcess(), pointer_to(image), wide, kRoom);
    if (got == 0 || got >= kRoom - 1) return;
    const wchar_t* path = behind(wide, L"\\??\\");  // Wine's
    if (path == nullptr && !put_drive(&path)) path = wide;
    length = WideCharToMultiByte(CP_UTF8, 0, path, -1, text, sizeof(text), nullptr, nullptr);
    if (length != 0) --length;
  }

 private:
  // \Device\HarddiskVolume3\folder -> C:\folder. A device's name is longer than a drive's.
  bool put_drive(const wchar_t** path) {
    const DWORD drives = GetLogicalDrives();
    for (unsigned letter = 0; letter != 26; ++letter) {
      const wchar_t drive[] = {static_cast<wchar_t>(L'A' + letter), L':', 0};
      wchar_t device[MAX_PATH];
      if ((drives >> letter & 1) == 0 || QueryDosDeviceW(drive, device, MAX_PATH) == 0) continue;
      const wchar_t* rest = behind(wide, device);
      if (rest == nullptr || *rest != L'\\') continue;
      wchar_t* begin = wide + (rest - wide) - 2;
      begin[0] = drive[0], begin[1] = drive[1];
      *path = begin;
      return true;
    }
    return false;
  }
};

}  // namespace

void each_module(void (*visit)(const Module& module, void* context), void* context) {
  KeepLastError keep;
  MEMORY_BASIC_INFORMATION region = {};
  for (uintptr_t at = 0; VirtualQuery(pointer_to(at), &region, sizeof(region)) != 0;) {
    const auto base = reinterpret_cast<uintptr_t>(region.AllocationBase);
    const uintptr_t end = reinterpret_cast<uintptr_t>(region.BaseAddress) + region.RegionSize;
    if (region.Type == MEM_IMAGE && reinterpret_cast<uintptr_t>(region.BaseAddress) == base) {
      const ModulePath path(base);
      if (path.length != 0)
        visit({base, end_of_image(base), 0, path.text, static_cast<size_t>(path.length), nullptr, 0}, context);
    }
    if (end <= at) return;
    at = end;
  }
}

}  // namespace rh::platform
