#include "modules.h"

#include <psapi.h>

#include <algorithm>

#include "text.h"
#include "wine.h"

namespace runner {
namespace {

constexpr DWORD kMostModules = 1024;
constexpr int kLooksWithoutNews = 25;

}  // namespace

std::vector<LoadedModule> modules_of(HANDLE process) {
  HMODULE handles[kMostModules];
  DWORD bytes = 0;
  EnumProcessModulesEx(process, handles, sizeof handles, &bytes, LIST_MODULES_ALL);
  std::vector<LoadedModule> found;
  for (DWORD i = 0; i < std::min<DWORD>(bytes / sizeof handles[0], kMostModules); ++i) {
    MODULEINFO info;
    wchar_t path[MAX_PATH];
    const DWORD length = GetModuleFileNameExW(process, handles[i], path, MAX_PATH);
    if (length == 0 || !GetModuleInformation(process, handles[i], &info, sizeof info)) continue;
    const auto begin = reinterpret_cast<std::uintptr_t>(info.lpBaseOfDll);
    found.push_back({begin, begin + info.SizeOfImage, narrow({path, length})});
  }
  return found;
}

bool ModuleLog::look() {
  const std::vector<LoadedModule> loaded = modules_of(process_);
  if (!loaded.empty()) ++looks_without_news_;
  for (const LoadedModule& module : loaded) {
    if (knows(module.path)) continue;
    const std::optional<bool> wines = is_wines(process_, module.begin);
    if (!wines) continue;
    seen_.push_back({module.path, *wines});
    looks_without_news_ = 0;
  }
  return looks_without_news_ < kLooksWithoutNews;
}

bool ModuleLog::knows(const std::string& path) const {
  return std::any_of(seen_.begin(), seen_.end(), [&](const SeenModule& one) { return one.path == path; });
}

}  // namespace runner
