#include "wine.h"

#include <cstring>

namespace runner {

constexpr int kTries = 10;

// Its DLLs say so where others say that they do not run in DOS mode.
std::optional<bool> is_wines(HANDLE process, std::uintptr_t begin) {
  constexpr char kMark[] = "Wine builtin DLL";
  char there[sizeof kMark - 1] = {};
  const auto* place = reinterpret_cast<const void*>(begin + sizeof(IMAGE_DOS_HEADER));
  for (int i = 0; i < kTries; ++i, Sleep(1))
    if (ReadProcessMemory(process, place, there, sizeof there, nullptr))
      return std::memcmp(there, kMark, sizeof there) == 0;
  return {};
}

}  // namespace runner
