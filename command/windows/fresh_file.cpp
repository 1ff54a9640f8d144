#include "fresh_file.h"

#include "common/message.h"
#include "text.h"

namespace rh::command {
namespace {

constexpr int kTries = 100;  // names that are taken

// Need not be hard to guess: a file that is there already is not taken.
std::wstring some_name() {
  LARGE_INTEGER ticks = {};
  QueryPerformanceCounter(&ticks);
  return L"rh" + std::to_wstring(GetCurrentProcessId()) + L"-" + std::to_wstring(ticks.QuadPart) + L".tmp";
}

}  // namespace

FreshFile::FreshFile(const std::wstring& folder, DWORD access) {
  for (int time = 0; time < kTries && handle_ == INVALID_HANDLE_VALUE; ++time) {
    path_ = folder + some_name();
    handle_ = CreateFileW(path_.c_str(), access, FILE_SHARE_READ | FILE_SHARE_WRITE, nullptr, CREATE_NEW, 0, nullptr);
    if (handle_ == INVALID_HANDLE_VALUE && GetLastError() != ERROR_FILE_EXISTS) break;
  }
  if (handle_ == INVALID_HANDLE_VALUE)
    throw Failure(exit_failed, "no file can be made in " + narrow(folder) + ": " + error_text(GetLastError()));
}

FreshFile::~FreshFile() {
  if (path_.empty()) return;
  CloseHandle(handle_);
  DeleteFileW(path_.c_str());
}

void FreshFile::write(const std::string& bytes) const {
  DWORD done = 0;
  if (!WriteFile(handle_, bytes.data(), static_cast<DWORD>(bytes.size()), &done, nullptr) || done != bytes.size() ||
      !FlushFileBuffers(handle_))
    throw Failure(exit_failed, narrow(path_) + ": " + error_text(GetLastError()));
}

std::wstring FreshFile::release() {
  CloseHandle(handle_);
  std::wstring path;
  path.swap(path_);
  return path;
}

}  // namespace rh::command
