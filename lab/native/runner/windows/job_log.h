// The processes that there are in a job, each noted as it begins: when it has ended, nothing tells of it any more but
// a handle that was opened before.
#pragma once

#include <windows.h>

#include <vector>

#include "handle.h"
#include "runner/lines.h"

namespace runner {

class JobLog {
 public:
  // Throws Failure.
  explicit JobLog(HANDLE job);
  ~JobLog();
  JobLog(const JobLog&) = delete;
  JobLog& operator=(const JobLog&) = delete;

  // In the order in which they began; to be asked once. One that ended before it was looked at has its number alone.
  std::vector<Program> finish();

 private:
  struct Seen {
    DWORD id;
    Handle process;
  };
  static DWORD WINAPI listen(void* log);
  void stop();

  Handle port_, thread_;
  std::vector<Seen> seen_;  // the thread's, while it runs
};

}  // namespace runner
