// The calling thread's stack, as the system's own unwinder finds it: it takes no lock of the loader's and does not
// allocate. On 32-bit x86 it follows frame pointers, and functions that keep none are left out.
#include "platform/platform.h"
#include "platform/windows/system.h"

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
  for (unsigned i = count_own(found, count); i < count && kept != most; ++i)
    frames[kept++] = reinterpret_cast<uintptr_t>(found[i]);
  return kept;
}

}  // namespace rh::platform
