// A program that starts itself:
//
//   generations LEVELS WIDTH EXPECTED [OTHER]
//
// At each level it makes sure that it is served as EXPECTED (injected.h), uses all heaps, and starts WIDTH of itself at
// once with one level less. OTHER is the same program for another processor: the levels alternate. Ends with the number
// of processes that were well, itself included, or with 255.
#include <windows.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "heaps.h"
#include "injected.h"
#include "support/pattern.h"

namespace heap_stress {
namespace {

constexpr int kFailed = 255;

// Blocks of all heaps, made here and freed in another thread.
DWORD WINAPI change_and_drop(void* of) {
  std::size_t size = 1;
  for (Block& block : *static_cast<std::vector<Block>*>(of)) {
    resize(block, size = size * 3 % 5000 + 1, true);
    drop(block);
  }
  return 0;
}

void use_all_heaps() {
  contract::Random random(GetCurrentProcessId());
  const HANDLE handle = HeapCreate(0, 0, 0);
  OsHeap own("heap of its own", handle);
  std::vector<Heap*> heaps(shared_heaps().begin(), shared_heaps().end());
  heaps.push_back(&own);
  std::vector<Block> blocks(40 * heaps.size());
  for (std::size_t at = 0; at < blocks.size(); ++at)
    make(blocks[at], *heaps[at % heaps.size()], random.size(20000), random.next(), at % 3 == 0);
  const HANDLE thread = CreateThread(nullptr, 0, change_and_drop, &blocks, 0, nullptr);
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
  Block left;
  make(left, own, 1000, 1, true);
  if (!HeapDestroy(handle)) fail("has a heap that was not destroyed", left);
}

HANDLE start(const std::string& program, const std::string& words, bool wide) {
  std::string line = "\"" + program + "\" " + words;
  std::wstring wide_line(line.begin(), line.end());
  STARTUPINFOA info = {};
  STARTUPINFOW wide_info = {};
  info.cb = sizeof info;
  wide_info.cb = sizeof wide_info;
  PROCESS_INFORMATION made = {};
  const BOOL done =
      wide ? CreateProcessW(nullptr, wide_line.data(), nullptr, nullptr, FALSE, 0, nullptr, nullptr, &wide_info, &made)
           : CreateProcessA(nullptr, line.data(), nullptr, nullptr, FALSE, 0, nullptr, nullptr, &info, &made);
  if (!done) return nullptr;
  CloseHandle(made.hThread);
  return made.hProcess;
}

// The number of processes that were well below this one; negative when not all were.
int end_of(HANDLE process) {
  DWORD code = kFailed;
  if (!process) return -1;
  WaitForSingleObject(process, INFINITE);
  GetExitCodeProcess(process, &code);
  CloseHandle(process);
  return code < kFailed ? static_cast<int>(code) : -1;
}

int run(int levels, int width, const char* expected, const std::string& self, const std::string& other) {
  if (!is_injected_as(expected)) return kFailed;
  int count = 1;
  bool well = true;
  std::vector<HANDLE> children;
  const std::string words = std::to_string(levels - 1) + " " + std::to_string(width) + " " + expected +
                            (other.empty() ? "" : " \"" + self + "\"");
  for (int at = 0; levels > 1 && at < width; ++at)
    children.push_back(start(other.empty() ? self : other, words, at % 2 == 0));
  use_all_heaps();
  for (const HANDLE child : children) {
    const int below = end_of(child);
    well = well && below > 0;
    count += below;
  }
  return well ? count : kFailed;
}

}  // namespace
}  // namespace heap_stress

int main(int count, char** words) {
  if (count < 4) return heap_stress::kFailed;
  char self[MAX_PATH];
  GetModuleFileNameA(nullptr, self, sizeof self);
  return heap_stress::run(std::atoi(words[1]), std::atoi(words[2]), words[3], self, count > 4 ? words[4] : "");
}
