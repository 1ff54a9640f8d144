// The calling thread's stack, as the system's own unwinder finds it: it takes no lock of the loader's and does not
// allocate. On 32-bit x86 it follows frame pointers, and functions that keep none are left out.
#include "platform/platform.h"
#include "platform/windows/system.h"

#include <psapi.h>

// The linker's: where the image begins that this is part of.
extern "C" const IMAGE_DOS_HEADER __ImageBase;

namespace rh::platform {

namespace {

bool is_own(const void* code) {
  const auto base = reinterpret_cast<uintptr_t>(&__ImageBase);
  const auto* headers = reinterpret_cast<const IMAGE_NT_HEADERS*>(base + static_cast<size_t>(__ImageBase.e_lfanew));
  return reinterpret_cast<uintptr_t>(code) - base < headers->OptionalHeader.SizeOfImage;
}

// Linked into the program, this code cannot be told from the rest of it.
unsigned count_own(void* const* code, unsigned count) {
  unsigned own = 0;
  if (image_address() == reinterpret_cast<uintptr_t>(&__ImageBase)) return 0;
  while (own != count && is_own(code[own])) ++own;
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

// How far the image goes that begins there: its headers are there, too, as long as it is.
uintptr_t end_of_image(uintptr_t base) {
  const auto* dos = reinterpret_cast<const IMAGE_DOS_HEADER*>(base);
  const auto* headers = reinterpret_cast<const IMAGE_NT_HEADERS*>(base + static_cast<size_t>(dos->e_lfanew));
  return base + headers->OptionalHeader.SizeOfImage;
}

// Longer paths are left out.
struct ModulePath {
  wchar_t wide[512];
  char text[3 * 512];
  int length;

  explicit ModulePath(HMODULE module) : wide{}, text{}, length(0) {
    constexpr DWORD kRoom = sizeof(wide) / sizeof(wide[0]);
    const DWORD got = GetModuleFileNameW(module, wide, kRoom);
    if (got == 0 || got >= kRoom) return;
    length = WideCharToMultiByte(CP_UTF8, 0, wide, static_cast<int>(got), text, sizeof(text), nullptr, nullptr);
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
      const ModulePath path(static_cast<HMODULE>(region.AllocationBase));
      if (path.length != 0)
        visit({base, end_of_image(base), 0, path.text, static_cast<size_t>(path.length), nullptr, 0}, context);
    }
    if (end <= at) return;
    at = end;
  }
}

}  // namespace rh::platform
