// One command in a job of its own, with what it starts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "handle.h"
#include "job_log.h"
#include "runner/options.h"

namespace runner {

class Command {
 public:
  // Created suspended, so that not even its first instruction runs outside the job. Throws Failure.
  Command(std::wstring line, const Options& options);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  void resume();
  // Whether it has ended after that time; processes that it started may live on.
  bool wait(DWORD milliseconds) const;
  DWORD exit_code() const;
  void end_all();  // with all it started

  // The processes there have been in the job until now; to be asked once.
  std::vector<Program> processes();

  HANDLE job() const { return job_.get(); }
  HANDLE process() const { return process_.get(); }
  DWORD id() const { return id_; }

 private:
  void create(std::wstring& line, const Options& options, STARTUPINFOW& startup);

  Handle job_, process_, thread_;
  std::unique_ptr<JobLog> log_;
  DWORD id_ = 0;
  bool resumed_ = false;
};

}  // namespace runner
