#include <windows.h>

#include "trace/same_file.h"

namespace trace {

namespace {

bool find(const std::string& path, BY_HANDLE_FILE_INFORMATION& found) {
  constexpr DWORD all = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
  const HANDLE file = CreateFileA(path.c_str(), 0, all, nullptr, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (file == INVALID_HANDLE_VALUE) return false;
  const bool told = GetFileInformationByHandle(file, &found) != FALSE;
  CloseHandle(file);
  return told;
}

}  // namespace

bool is_same_file(const std::string& one, const std::string& other) {
  BY_HANDLE_FILE_INFORMATION first, second;
  return find(one, first) && find(other, second) && first.dwVolumeSerialNumber == second.dwVolumeSerialNumber &&
         first.nFileIndexHigh == second.nFileIndexHigh && first.nFileIndexLow == second.nFileIndexLow;
}

}  // namespace trace
