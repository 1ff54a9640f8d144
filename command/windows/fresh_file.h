// A file that nobody else has prepared.
#pragma once

#include <string>
#include <windows.h>

namespace rh::command {

// Made anew in a folder, and gone with this object. As long as that is there the file is open, so that nobody else can
// put another one, or a link, in its place.
class FreshFile {
 public:
  // `folder` ends with a separator; `access` is GENERIC_WRITE to write here, GENERIC_READ where others are to. Throws
  // Failure when none can be made.
  FreshFile(const std::wstring& folder, DWORD access);
  FreshFile(const FreshFile&) = delete;
  FreshFile& operator=(const FreshFile&) = delete;
  ~FreshFile();

  const std::wstring& path() const { return path_; }
  // Throws Failure.
  void write(const std::string& bytes) const;
  // Closes the file and gives its path to the caller, who takes care of it from now on.
  std::wstring release();

 private:
  std::wstring path_;
  HANDLE handle_ = INVALID_HANDLE_VALUE;
};

}  // namespace rh::command
