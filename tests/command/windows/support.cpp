#include "support.h"

#include <filesystem>
#include <stdexcept>
#include <thread>

namespace launch_test {
namespace {

namespace fs = std::filesystem;

struct Pipe {
  HANDLE read_end = nullptr, write_end = nullptr;

  Pipe() {
    if (!CreatePipe(&read_end, &write_end, nullptr, 0)) throw std::runtime_error("CreatePipe");
  }
  static void make_inherited(HANDLE end) { SetHandleInformation(end, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT); }
};

std::string read_all(HANDLE from) {
  std::string text;
  char bytes[4096];
  DWORD length = 0;
  while (ReadFile(from, bytes, sizeof bytes, &length, nullptr) && length > 0) text.append(bytes, length);
  CloseHandle(from);
  return text;
}

void write_all(HANDLE to, const std::string& text) {
  DWORD done = 0;
  WriteFile(to, text.data(), static_cast<DWORD>(text.size()), &done, nullptr);
  CloseHandle(to);
}

PROCESS_INFORMATION create(std::wstring line, const Start& how, STARTUPINFOW info) {
  PROCESS_INFORMATION made;
  std::vector<BYTE> descriptors = how.descriptors;
  std::wstring title = how.title;
  info.cbReserved2 = static_cast<WORD>(descriptors.size());
  info.lpReserved2 = descriptors.empty() ? nullptr : descriptors.data();
  if (!title.empty()) info.lpTitle = title.data();
  if (!CreateProcessW(nullptr, line.data(), nullptr, nullptr, TRUE, how.flags | CREATE_SUSPENDED, nullptr,
                      how.folder.empty() ? nullptr : how.folder.c_str(), &info, &made))
    throw std::runtime_error("CreateProcess: error " + std::to_string(GetLastError()));
  if (how.job != nullptr && !AssignProcessToJobObject(how.job, made.hProcess))
    throw std::runtime_error("AssignProcessToJobObject");
  ResumeThread(made.hThread);
  CloseHandle(made.hThread);
  return made;
}

std::wstring own_folder() {
  wchar_t path[MAX_PATH];
  GetModuleFileNameW(nullptr, path, MAX_PATH);
  return fs::path(path).parent_path().wstring();
}

}  // namespace

std::wstring quoted(const std::wstring& path) { return L"\"" + path + L"\""; }

Ended start(const std::wstring& line, const Start& how) {
  Pipe input, output, errors;
  Pipe::make_inherited(input.read_end);
  Pipe::make_inherited(output.write_end);
  Pipe::make_inherited(errors.write_end);
  STARTUPINFOW info = {};
  info.cb = sizeof info;
  info.dwFlags = STARTF_USESTDHANDLES;
  info.hStdInput = input.read_end;
  info.hStdOutput = output.write_end;
  info.hStdError = errors.write_end;
  const PROCESS_INFORMATION made = create(line, how, info);
  for (const HANDLE end : {input.read_end, output.write_end, errors.write_end}) CloseHandle(end);
  Ended ended;
  std::thread writer(write_all, input.write_end, how.input);
  std::thread reader([&] { ended.errors = read_all(errors.read_end); });
  ended.output = read_all(output.read_end);
  ended.outlived_output = WaitForSingleObject(made.hProcess, 1000) == WAIT_TIMEOUT;
  writer.join();
  reader.join();
  WaitForSingleObject(made.hProcess, INFINITE);
  GetExitCodeProcess(made.hProcess, &ended.code);
  CloseHandle(made.hProcess);
  return ended;
}

std::wstring launcher_path() {
  return (fs::path(own_folder()) / L"" LAUNCHER_FROM_HERE).lexically_normal().make_preferred().wstring();
}

std::wstring program_path(const std::wstring& name) {
  return (fs::path(own_folder()) / L"programs" / name).make_preferred().wstring();
}

std::wstring launcher() { return quoted(launcher_path()); }
std::wstring program(const std::wstring& name) { return quoted(program_path(name)); }

std::wstring run_with_probe(const std::wstring& options) {
  return launcher() + L" run " + options + L" --dll " + program(L"probe.dll") + L" -- ";
}

Folder::Folder(const std::wstring& name) {
  static int count = 0;
  path_ = (fs::temp_directory_path() /
           (L"reheap-" + std::to_wstring(GetCurrentProcessId()) + L"-" + std::to_wstring(count++)))
              .wstring() +
          name;
  fs::create_directories(path_);
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::wstring Folder::copy(const std::wstring& from, const std::wstring& file) const {
  fs::copy_file(from, path(file), fs::copy_options::overwrite_existing);
  return path(file);
}

namespace {

constexpr const wchar_t* kOtherName = sizeof(void*) == 8 ? L"reheap32" : L"reheap64";

}  // namespace

Installation::Installation() {
  const fs::path own = fs::path(launcher_path()).parent_path();
  const fs::path other = own / L"" OTHER_FROM_LAUNCHER;
  for (const wchar_t* ending : {L".exe", L".dll"}) {
    folder_.copy((own / L"reheap").wstring() + ending, std::wstring(L"reheap") + ending);
    const fs::path file = (other / L"reheap").wstring() + ending;
    whole_ = whole_ && fs::exists(file);
    if (whole_) folder_.copy(file.wstring(), std::wstring(kOtherName) + ending);
  }
}

std::wstring Installation::launcher() const { return quoted(folder_.path(L"reheap.exe")); }

std::wstring Installation::other_library() const { return folder_.path(std::wstring(kOtherName) + L".dll"); }

std::string read_file(const std::wstring& path) {
  const HANDLE file =
      CreateFileW(path.c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, nullptr, OPEN_EXISTING, 0, nullptr);
  return file == INVALID_HANDLE_VALUE ? std::string() : read_all(file);
}

void write_file(const std::wstring& path, const std::string& bytes) {
  write_all(CreateFileW(path.c_str(), GENERIC_WRITE, 0, nullptr, CREATE_ALWAYS, 0, nullptr), bytes);
}

Attached::Attached() { SetEnvironmentVariableW(L"PROBE_FILE", folder_.path(L"probe").c_str()); }
Attached::~Attached() { SetEnvironmentVariableW(L"PROBE_FILE", nullptr); }
std::string Attached::lines() const { return read_file(folder_.path(L"probe")); }

std::string before_any_runtime() {
  return sizeof(void*) == 8 ? "before any runtime, 64-bit\n" : "before any runtime, 32-bit\n";
}

}  // namespace launch_test
