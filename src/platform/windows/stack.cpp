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

}  // namespace rh::platform
