#include "patch_files.h"

#include "common/message.h"
#include "fresh_file.h"
#include "program.h"
#include "redirect/process/inject.h"
#include "start.h"
#include "text.h"

#include <cstdio>

namespace rh::command {
namespace {

[[noreturn]] void fail(const std::wstring& file, DWORD error) {
  const bool missing = error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND;
  throw Failure(missing ? exit_not_found : exit_failed, narrow(file) + ": " + error_text(error));
}

class File {
 public:
  File(const std::wstring& path, DWORD access, DWORD how)
      : path_(path), handle_(CreateFileW(path.c_str(), access, FILE_SHARE_READ, nullptr, how, 0, nullptr)) {
    if (handle_ == INVALID_HANDLE_VALUE) fail(path_, GetLastError());
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { CloseHandle(handle_); }

  std::string read() const {
    LARGE_INTEGER size = {};
    if (!GetFileSizeEx(handle_, &size)) fail(path_, GetLastError());
    if (size.QuadPart > MAXLONG) throw Failure(exit_failed, narrow(path_) + ": it is too large");
    std::string bytes(static_cast<size_t>(size.QuadPart), '\0');
    DWORD done = 0;
    if (!ReadFile(handle_, bytes.data(), static_cast<DWORD>(bytes.size()), &done, nullptr)) fail(path_, GetLastError());
    bytes.resize(done);
    return bytes;
  }

 private:
  std::wstring path_;
  HANDLE handle_;
};

std::wstring path_of(const std::string& name) {
  std::wstring path = full_path(wide(name));
  if (path.empty()) throw Failure(exit_failed, name + ": its path is too long");
  return path;
}

std::wstring folder_of(const std::wstring& path) { return path.substr(0, path.find_last_of(L"\\/") + 1); }

bool file_exists(const std::wstring& path) { return GetFileAttributesW(path.c_str()) != INVALID_FILE_ATTRIBUTES; }

// A file beside the one to be made; gone with this object unless it took that one's place.
class Draft {
 public:
  explicit Draft(const std::wstring& target) : file_(folder_of(target), GENERIC_WRITE), target_(target) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (!path_.empty()) DeleteFileW(path_.c_str());
  }

  void write(const std::string& bytes) const { file_.write(bytes); }

  // At once: whoever looks sees the old file or the new one. What was there keeps its rights and attributes.
  void put_in_place() {
    const bool exists = file_exists(target_);
    path_ = file_.release();
    // Asked before: where it cannot be replaced because it runs, Wine's ReplaceFile leaves a file of its own behind.
    if (exists) File(target_, GENERIC_WRITE | DELETE, OPEN_EXISTING);
    const BOOL done = exists ? ReplaceFileW(target_.c_str(), path_.c_str(), nullptr, 0, nullptr, nullptr)
                             : MoveFileExW(path_.c_str(), target_.c_str(), MOVEFILE_WRITE_THROUGH);
    if (!done) fail(target_, GetLastError());
    path_.clear();
  }

 private:
  FreshFile file_;
  std::wstring target_, path_;
};

void write_in_place(const std::wstring& target, const std::string& bytes) {
  Draft draft(target);
  draft.write(bytes);
  draft.put_in_place();
}

// The file's name before what is wrong with it.
template <class Make> auto about(const std::wstring& file, Make make) {
  try {
    return make();
  } catch (const Failure& failure) {
    throw Failure(failure.status, narrow(file) + ": " + failure.what());
  }
}

void print(const std::string& line) {
  const std::string text = line + "\n";  // the C runtime makes the end of a line of it
  fwrite(text.data(), 1, text.size(), stdout);
}

bool is_same_file(const std::wstring& one, const std::wstring& other) {
  return _wcsicmp(one.c_str(), other.c_str()) == 0;
}

// One for another processor serves other programs.
bool is_reheap_for(const std::wstring& library, WORD machine) {
  return is_reheap(library.c_str()) && pe::file_machine(library.c_str(), pe::FileKind::library) == machine;
}

void copy_library(WORD machine, const std::wstring& target) {
  inject::Path library;
  if (!inject::library_for(machine, library_to_use("", inject::is_hardened(target.c_str())).c_str(), library))
    throw Failure(exit_failed, inject::text_of(inject::Obstacle::no_library));
  if (is_same_file(library.text, target)) return;
  if (file_exists(target) && !is_reheap_for(target, machine))
    throw Failure(exit_failed, narrow(target) + " is there, and is no reheap.dll for it");
  write_in_place(target, File(library.text, GENERIC_READ, OPEN_EXISTING).read());
  print(narrow(target) + ": put there");
}

void warn_of(const std::wstring& library, WORD machine) {
  if (!file_exists(library))
    say(narrow(library) + " is not there: without it the program does not start");
  else if (!is_reheap_for(library, machine))
    say(narrow(library) + " is no reheap.dll for it: with that the program does not start, or not on reheap");
}

}  // namespace

int patch(const PatchOptions& options) {
  const std::wstring file = path_of(options.file);
  const std::wstring target = options.output.empty() ? file : path_of(options.output);
  const std::string bytes = File(file, GENERIC_READ, OPEN_EXISTING).read();
  const Patched result = about(file, [&] { return patched(bytes, options.request); });
  const std::wstring library = folder_of(target) + wide(options.request.library);
  const WORD machine = ProgramFile(result.bytes).image().machine;
  if (options.copy_library) copy_library(machine, library);
  write_in_place(target, result.bytes);
  const std::string name = narrow(target);
  print(name + ": patched; " + options.request.library + " must lie beside it");
  if (result.was_signed) print(name + ": its signature is gone; sign it again");
  if (result.has_appended) print(name + ": its appended data stands at its old place and, once more, at the end");
  warn_of(library, machine);
  return exit_reached;
}

int unpatch(const PatchOptions& options) {
  const std::wstring file = path_of(options.file);
  const std::wstring target = options.output.empty() ? file : path_of(options.output);
  const std::string bytes = File(file, GENERIC_READ, OPEN_EXISTING).read();
  const Unpatched result = about(file, [&] { return unpatched(bytes); });
  write_in_place(target, result.bytes);
  const std::string name = narrow(target);
  print(name + (result.exact ? ": as it was before, byte for byte"
                             : ": no longer patched; what else was changed in it since stays"));
  if (result.was_signed_since) print(name + ": the signature made since is gone");
  return exit_reached;
}

}  // namespace rh::command
