// One command in a job of its own, with what it starts.
#pragma once

#include <string>
#include <vector>

#include "handle.h"
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
  std::vector<DWORD> processes() const;

  HANDLE job() const { return job_.get(); }
  HANDLE process() const { return process_.get(); }
  DWORD id() const { return id_; }

 private:
  void create(std::wstring& line, const Options& options, STARTUPINFOW& startup);

  void begin_log() const;

  Handle job_, log_, process_, thread_;
  DWORD id_ = 0;
  bool resumed_ = false;
};

}  // namespace runner
