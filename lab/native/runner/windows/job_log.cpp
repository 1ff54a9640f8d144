#include "job_log.h"

#include "figures.h"
#include "runner/failure.h"
#include "text.h"

namespace runner {
namespace {

constexpr DWORD kLongestPath = 32768;
constexpr DWORD kStop = 0;  // no message of a job

std::string path_of(HANDLE process) {
  std::wstring path(kLongestPath, L'\0');
  DWORD length = kLongestPath;
  if (!process || !QueryFullProcessImageNameW(process, 0, path.data(), &length)) return {};
  path.resize(length);
  return narrow(path);
}

}  // namespace

JobLog::JobLog(HANDLE job) : port_(CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 1)) {
  JOBOBJECT_ASSOCIATE_COMPLETION_PORT port = {job, port_.get()};
  if (port_ && SetInformationJobObject(job, JobObjectAssociateCompletionPortInformation, &port, sizeof port))
    thread_.reset(CreateThread(nullptr, 0, listen, this, 0, nullptr));
  if (!thread_) throw Failure(kOwnFault, error_text("the job does not tell of its processes", GetLastError()));
}

JobLog::~JobLog() { stop(); }

DWORD JobLog::listen(void* log) {
  auto& self = *static_cast<JobLog*>(log);
  DWORD message;
  ULONG_PTR key;
  OVERLAPPED* process;  // its number, with these messages
  while (GetQueuedCompletionStatus(self.port_.get(), &message, &key, &process, INFINITE) && message != kStop) {
    if (message != JOB_OBJECT_MSG_NEW_PROCESS) continue;
    const auto id = static_cast<DWORD>(reinterpret_cast<ULONG_PTR>(process));
    self.seen_.push_back({id, Handle(OpenProcess(PROCESS_QUERY_INFORMATION, FALSE, id))});
  }
  return 0;
}

// What was told before is still heard.
void JobLog::stop() {
  if (!thread_) return;
  PostQueuedCompletionStatus(port_.get(), kStop, 0, nullptr);
  WaitForSingleObject(thread_.get(), INFINITE);
  thread_.reset();
}

std::vector<Program> JobLog::finish() {
  stop();
  std::vector<Program> all;
  for (const Seen& one : seen_) {
    Program& program = all.emplace_back();
    program.process = one.id;
    program.path = path_of(one.process.get());
    program.cpu_us = used_by(one.process.get());
  }
  return all;
}

}  // namespace runner
