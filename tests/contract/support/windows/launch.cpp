// Scenarios as separate processes. Their output goes to files, which need no waiting: a pipe would stay open as long as
// any process that inherited it.
#include <windows.h>

#include <optional>

#include "support/process.h"
#include "support/scenario.h"

namespace contract {
namespace {

HANDLE handle_of(std::intptr_t number) { return reinterpret_cast<HANDLE>(number); }
std::intptr_t number_of(HANDLE handle) { return reinterpret_cast<std::intptr_t>(handle); }

// An inheritable file that is deleted when closed.
HANDLE temporary_file() {
  char folder[MAX_PATH];
  char path[MAX_PATH];
  GetTempPathA(sizeof folder, folder);
  GetTempFileNameA(folder, "rh", 0, path);
  SECURITY_ATTRIBUTES inherited = {sizeof inherited, nullptr, TRUE};
  return CreateFileA(path, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_DELETE, &inherited, CREATE_ALWAYS,
                     FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, nullptr);
}

// The text written, with line ends as on every other system.
std::string contents(HANDLE file) {
  std::string text;
  char piece[4096];
  SetFilePointer(file, 0, nullptr, FILE_BEGIN);
  for (DWORD got = 0; ReadFile(file, piece, sizeof piece, &got, nullptr) && got > 0;) text.append(piece, got);
  CloseHandle(file);
  std::erase(text, '\r');
  return text;
}

// Sets variables of this process's environment until the end of the scope.
class EnvironmentScope {
 public:
  explicit EnvironmentScope(const Conditions& conditions) {
    for (const auto& [name, value] : conditions.environment) set(name, value);
    for (const Limit& limit : conditions.limits) set("CONTRACT_COMMIT_LIMIT", std::to_string(limit.bytes));
  }
  ~EnvironmentScope() {
    for (const auto& [name, value] : before_) SetEnvironmentVariableA(name.c_str(), value ? value->c_str() : nullptr);
  }
  EnvironmentScope(const EnvironmentScope&) = delete;
  EnvironmentScope& operator=(const EnvironmentScope&) = delete;

 private:
  void set(const std::string& name, const std::string& value) {
    char old[1024];
    const bool there = GetEnvironmentVariableA(name.c_str(), old, sizeof old) > 0;
    before_.emplace_back(name, there ? std::optional<std::string>(old) : std::nullopt);
    SetEnvironmentVariableA(name.c_str(), value.c_str());
  }

  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

// A job that limits the process to this much. Where the system does not enforce it, the process does
// (commit_limit.cpp).
void limit_commit(HANDLE process, std::size_t bytes) {
  const HANDLE job = CreateJobObjectA(nullptr, nullptr);
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {};
  limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_PROCESS_MEMORY;
  limits.ProcessMemoryLimit = bytes;
  SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits);
  AssignProcessToJobObject(job, process);
}

constexpr DWORD kAborted = 3;  // the C library's abort

bool is_exception(DWORD status) { return status >= 0xc0000000 || status == kAborted; }

}  // namespace

Running::Running(std::intptr_t process, std::intptr_t out, std::intptr_t err, double end)
    : process_(process), out_(out), err_(err), end_(end) {}

Outcome Running::finish() {
  Outcome outcome;
  const HANDLE process = handle_of(process_);
  const double left = end_ - seconds();
  const DWORD patience_ms = left > 0 ? static_cast<DWORD>(left * 1000) : 0;
  outcome.late = WaitForSingleObject(process, patience_ms) != WAIT_OBJECT_0;
  if (outcome.late) {
    TerminateProcess(process, 1);
    WaitForSingleObject(process, 5000);
  }
  DWORD status = 0;
  GetExitCodeProcess(process, &status);
  if (!outcome.late && is_exception(status)) outcome.signal = static_cast<int>(status);
  if (!outcome.late && outcome.signal == 0) outcome.code = static_cast<int>(status);
  CloseHandle(process);
  outcome.out = contents(handle_of(out_));
  outcome.err = contents(handle_of(err_));
  return outcome;
}

Running start(const std::string& scenario, const Conditions& conditions) {
  const EnvironmentScope environment(conditions);
  char program[MAX_PATH];
  GetModuleFileNameA(nullptr, program, sizeof program);
  std::string line = "\"" + std::string(program) + "\" --scenario " + scenario;
  STARTUPINFOA startup = {};
  startup.cb = sizeof startup;
  startup.dwFlags = STARTF_USESTDHANDLES;
  startup.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
  startup.hStdOutput = temporary_file();
  startup.hStdError = temporary_file();
  PROCESS_INFORMATION made = {};
  const BOOL started =
      CreateProcessA(program, line.data(), nullptr, nullptr, TRUE, CREATE_SUSPENDED, nullptr, nullptr, &startup, &made);
  NEED(started, "error %lu", GetLastError());
  for (const Limit& limit : conditions.limits) limit_commit(made.hProcess, limit.bytes);
  ResumeThread(made.hThread);
  CloseHandle(made.hThread);
  return Running(number_of(made.hProcess), number_of(startup.hStdOutput), number_of(startup.hStdError),
                 seconds() + patience(conditions.deadline));
}

}  // namespace contract
