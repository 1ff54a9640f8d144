// What the tests of the launcher share. They are Windows programs, for a command line has to be given byte by byte.
#pragma once

#include <optional>
#include <string>
#include <vector>
#include <windows.h>

namespace launch_test {

struct Ended {
  DWORD code = 0;
  std::string output;
  std::string errors;
  bool outlived_output = false;  // by a second
};

// How a process is started; what is not said is as usual.
struct Start {
  std::string input;
  DWORD flags = 0;
  HANDLE job = nullptr;
  std::wstring folder;
  std::vector<BYTE> descriptors;  // STARTUPINFO's lpReserved2
  std::wstring title;
};

// The line as it is, its first word the program.
Ended start(const std::wstring& line, const Start& how = {});

// reheap.exe of the build, and the programs built for the tests: quoted, ready for a line.
std::wstring launcher();
std::wstring program(const std::wstring& name);
std::wstring quoted(const std::wstring& path);
// Their paths.
std::wstring launcher_path();
std::wstring program_path(const std::wstring& name);

// The stand-in for reheap.dll: `reheap run` with it, up to and with "--".
std::wstring run_with_probe(const std::wstring& options = L"");

// A folder of its own for a test; gone with this object.
class Folder {
 public:
  explicit Folder(const std::wstring& name = L"");
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::wstring path(const std::wstring& file) const { return path_ + L"\\" + file; }
  const std::wstring& path() const { return path_; }
  // Copies a program of the tests into the folder.
  std::wstring copy(const std::wstring& from, const std::wstring& file) const;

 private:
  std::wstring path_;
};

// The launchers and libraries of both architectures in one folder, as they are installed.
class Installation {
 public:
  Installation();
  // Whether there is a build for the other one.
  bool is_whole() const { return whole_; }
  std::wstring launcher() const;
  std::wstring library() const { return folder_.path(L"reheap.dll"); }
  std::wstring other_library() const;

 private:
  Folder folder_;
  bool whole_ = true;
};

std::string read_file(const std::wstring& path);
void write_file(const std::wstring& path, const std::string& bytes);

// The file that the stand-in writes to, for as long as this object is there.
class Attached {
 public:
  Attached();
  ~Attached();
  // A line for each process that it came into since.
  std::string lines() const;

 private:
  Folder folder_;
};

// What it writes of a process of this architecture that it came into as it should.
std::string before_any_runtime();

}  // namespace launch_test
