#include "start.h"

#include "common/message.h"
#include "program.h"
#include "text.h"

#include <cstring>
#include <cwchar>

namespace rh::command {
namespace {

HANDLE open_inherited(const wchar_t* path) {
  SECURITY_ATTRIBUTES inherited = {sizeof inherited, nullptr, TRUE};
  return CreateFileW(path, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited, OPEN_EXISTING,
                     0, nullptr);
}

// A title that was not given is the path of what was started: the program's is its own.
bool is_own_title(const wchar_t* title) {
  inject::Path launcher;
  inject::module_path(nullptr, launcher);
  return title != nullptr && _wcsicmp(title, launcher.text) == 0;
}

// What the launcher was started with: title, window, position, and the descriptors beyond the third that C runtimes
// hand to each other. Standard handles that were not given so are passed on by the OS.
STARTUPINFOW startup(const wchar_t* only_errors) {
  STARTUPINFOW info;
  GetStartupInfoW(&info);
  if (is_own_title(info.lpTitle)) info.lpTitle = nullptr;
  if (only_errors != nullptr) {
    info.dwFlags |= STARTF_USESTDHANDLES;
    info.hStdInput = info.hStdOutput = open_inherited(L"NUL");
    info.hStdError = open_inherited(only_errors);
  }
  return info;
}

std::wstring found_program(const std::wstring& name) {
  std::wstring program = find_program(name);
  if (program.empty()) throw Failure(exit_not_found, narrow(name) + ": " + error_text(ERROR_FILE_NOT_FOUND));
  return program;
}

// It is there, whatever the error says: that is about what should have run it, such as a DOS that is not installed.
[[noreturn]] void not_started(const std::wstring& program, DWORD error) {
  throw Failure(exit_not_executable, narrow(program) + " cannot be started: " + error_text(error));
}

}  // namespace

StartedProgram::~StartedProgram() {
  if (!let_go_) TerminateProcess(made_.hProcess, exit_failed);
  CloseHandle(made_.hThread);
  CloseHandle(made_.hProcess);
}

void StartedProgram::resume() {
  runs_ = true;
  ResumeThread(made_.hThread);
}

void StartedProgram::let_go() {
  let_go_ = true;
  if (!runs_) resume();
}

std::optional<DWORD> StartedProgram::wait(DWORD milliseconds) const {
  DWORD code = 0;
  if (WaitForSingleObject(made_.hProcess, milliseconds) != WAIT_OBJECT_0 || !GetExitCodeProcess(made_.hProcess, &code))
    return std::nullopt;
  return code;
}

PROCESS_INFORMATION create_suspended(const CommandLine& line, const wchar_t* only_errors) {
  const std::wstring program = found_program(line.program);
  STARTUPINFOW info = startup(only_errors);
  std::wstring words = line.program_line;
  PROCESS_INFORMATION made;
  // A raised priority is not inherited by itself.
  const DWORD flags = CREATE_SUSPENDED | GetPriorityClass(GetCurrentProcess());
  if (!CreateProcessW(program.c_str(), words.data(), nullptr, nullptr, TRUE, flags, nullptr, nullptr, &info, &made))
    not_started(program, GetLastError());
  return made;
}

// They stand in a row: how many, a byte of flags for each, a handle for each.
std::vector<HANDLE> descriptors_given() {
  constexpr BYTE open = 1;
  STARTUPINFOW info;
  GetStartupInfoW(&info);
  int count = 0;
  if (info.lpReserved2 == nullptr || info.cbReserved2 < sizeof count) return {};
  std::memcpy(&count, info.lpReserved2, sizeof count);
  if (count < 0 || static_cast<size_t>(count) > (info.cbReserved2 - sizeof count) / (1 + sizeof(HANDLE))) return {};
  const BYTE* const flags = info.lpReserved2 + sizeof count;
  std::vector<HANDLE> handles;
  for (int at = 0; at < count; ++at) {
    HANDLE handle = nullptr;
    std::memcpy(&handle, flags + count + static_cast<size_t>(at) * sizeof handle, sizeof handle);
    if ((flags[at] & open) != 0) handles.push_back(handle);
  }
  return handles;
}

bool start_helper(const wchar_t* program, wchar_t* command_line, PROCESS_INFORMATION* made) {
  STARTUPINFOW info = {};
  info.cb = sizeof info;
  return CreateProcessW(program, command_line, nullptr, nullptr, FALSE, CREATE_NO_WINDOW, nullptr, nullptr, &info,
                        made);
}

// Of whichever architecture: the other one's is found beside it.
static std::wstring library_beside(bool hardened) {
  inject::Path launcher, path;
  inject::module_path(nullptr, launcher);
  if (inject::find_library(launcher.text, hardened, pe::own_machine, path)) return path.text;
  if (hardened) throw Failure(exit_failed, "there is no reheap-hardened.dll beside " + narrow(launcher.text));
  return launcher.text;
}

std::wstring library_to_use(const std::string& given, bool hardened) {
  if (given.empty()) return library_beside(hardened);
  if (hardened) throw Failure(exit_failed, "--hardened and --dll name two libraries; leave one of them out");
  const std::wstring path = full_path(wide(given));
  if (path.empty() || pe::file_machine(path.c_str(), pe::FileKind::library) == 0)
    throw Failure(exit_failed, given + " is no library that can be loaded");
  return path;
}

bool is_reheap(const wchar_t* library) {
  const std::string bytes = read_file(library);
  return bytes.find("REHEAP_DOCTOR") != std::string::npos || bytes.find("rh_report_json") != std::string::npos;
}

}  // namespace rh::command
