#include "command.h"

#include "runner/failure.h"
#include "text.h"

namespace runner {
namespace {

constexpr UINT kEndedByRunner = 124;

SECURITY_ATTRIBUTES inheritable() { return {sizeof(SECURITY_ATTRIBUTES), nullptr, TRUE}; }

// The file, opened so that the command inherits it; or a copy of the runner's own stream that it does.
Handle stream(const std::string& file, DWORD own, DWORD access, DWORD disposition) {
  HANDLE result = nullptr;
  if (file.empty()) {
    DuplicateHandle(GetCurrentProcess(), GetStdHandle(own), GetCurrentProcess(), &result, 0, TRUE,
                    DUPLICATE_SAME_ACCESS);
    return Handle(result);
  }
  SECURITY_ATTRIBUTES security = inheritable();
  result = CreateFileW(wide(file).c_str(), access, FILE_SHARE_READ | FILE_SHARE_WRITE, &security, disposition,
                       FILE_ATTRIBUTE_NORMAL, nullptr);
  if (result == INVALID_HANDLE_VALUE) throw Failure(kOwnFault, error_text("cannot open " + file, GetLastError()));
  return Handle(result);
}

// The runner's own, which the command inherits.
void change_environment(const Options& options) {
  for (const std::string& name : options.unset) SetEnvironmentVariableW(wide(name).c_str(), nullptr);
  for (const std::string& both : options.set) {
    const size_t equals = both.find('=');
    SetEnvironmentVariableW(wide(both.substr(0, equals)).c_str(), wide(both.substr(equals + 1)).c_str());
  }
}

int status_of(DWORD error) {
  if (error == ERROR_DIRECTORY) return kOwnFault;
  return error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND ? kNotFound : kCannotExecute;
}

}  // namespace

Command::Command(std::wstring line, const Options& options) : job_(CreateJobObjectW(nullptr, nullptr)) {
  if (!job_) throw Failure(kOwnFault, error_text("there is no job for the command", GetLastError()));
  if (options.account) log_ = std::make_unique<JobLog>(job());
  const Handle input = stream(options.input, STD_INPUT_HANDLE, GENERIC_READ, OPEN_EXISTING);
  const Handle output = stream(options.output, STD_OUTPUT_HANDLE, GENERIC_WRITE, CREATE_ALWAYS);
  const Handle errors = stream(options.errors, STD_ERROR_HANDLE, GENERIC_WRITE, CREATE_ALWAYS);
  STARTUPINFOW startup = {};
  startup.cb = sizeof startup;
  startup.dwFlags = STARTF_USESTDHANDLES;
  startup.hStdInput = input.get();
  startup.hStdOutput = output.get();
  startup.hStdError = errors.get();
  create(line, options, startup);
}

void Command::create(std::wstring& line, const Options& options, STARTUPINFOW& startup) {
  const std::wstring place = wide(options.directory);
  change_environment(options);
  PROCESS_INFORMATION made;
  if (!CreateProcessW(nullptr, line.data(), nullptr, nullptr, TRUE, CREATE_SUSPENDED, nullptr,
                      place.empty() ? nullptr : place.c_str(), &startup, &made)) {
    const DWORD error = GetLastError();
    throw Failure(status_of(error), error_text("cannot run " + narrow(line), error));
  }
  process_.reset(made.hProcess);
  thread_.reset(made.hThread);
  id_ = made.dwProcessId;
  if (AssignProcessToJobObject(job(), process())) return;
  const DWORD error = GetLastError();
  TerminateProcess(process(), kEndedByRunner);
  throw Failure(kOwnFault, error_text("the job does not take the command", error));
}

Command::~Command() {
  if (process_ && !resumed_) TerminateProcess(process(), kEndedByRunner);
}

std::vector<Program> Command::processes() { return log_->finish(); }

void Command::resume() {
  resumed_ = true;
  ResumeThread(thread_.get());
}

bool Command::wait(DWORD milliseconds) const { return WaitForSingleObject(process(), milliseconds) == WAIT_OBJECT_0; }

DWORD Command::exit_code() const {
  DWORD code = 0;
  GetExitCodeProcess(process(), &code);
  return code;
}

void Command::end_all() { TerminateJobObject(job(), kEndedByRunner); }

}  // namespace runner
