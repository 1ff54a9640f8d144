// What the process may hold, and whether memory is short.
#include <atomic>

#include "platform/platform.h"
#include "platform/windows/system.h"

#include <psapi.h>

namespace rh::platform {

namespace {

// Newer than what the headers know: what all processes of a job have committed (Windows 10 1607).
constexpr auto kJobMemoryUsage = static_cast<JOBOBJECTINFOCLASS>(28);
struct JobMemoryUsage {
  ULONG64 now, peak;
};

uint64_t committed_by_process() {
  PROCESS_MEMORY_COUNTERS_EX counters = {};
  auto* plain = reinterpret_cast<PROCESS_MEMORY_COUNTERS*>(&counters);
  return K32GetProcessMemoryInfo(GetCurrentProcess(), plain, sizeof(counters)) ? counters.PrivateUsage : 0;
}

uint64_t committed_by_job(uint64_t by_process) {
  JobMemoryUsage usage = {};
  bool told = QueryInformationJobObject(nullptr, kJobMemoryUsage, &usage, sizeof(usage), nullptr) != 0;
  return told && usage.now > by_process ? usage.now : by_process;
}

void restrict(uint64_t limit, uint64_t committed, uint64_t held, Grant* grant) {
  uint64_t others = committed > held ? committed - held : 0;
  uint64_t left = limit > others ? limit - others : 0;
  if (left < grant->hard) grant->hard = left;
  if (limit < grant->least) grant->least = limit;
}

}  // namespace

// Of the job that the process is in; those that it is nested in cannot be asked by name.
Grant read_grant(uint64_t held) {
  KeepLastError keep;
  Grant grant;
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION job = {};
  if (!QueryInformationJobObject(nullptr, JobObjectExtendedLimitInformation, &job, sizeof(job), nullptr)) return grant;
  const DWORD flags = job.BasicLimitInformation.LimitFlags;
  const uint64_t own = committed_by_process();
  if ((flags & JOB_OBJECT_LIMIT_PROCESS_MEMORY) != 0) restrict(job.ProcessMemoryLimit, own, held, &grant);
  if ((flags & JOB_OBJECT_LIMIT_JOB_MEMORY) != 0) restrict(job.JobMemoryLimit, committed_by_job(own), held, &grant);
  return grant;
}

uint64_t machine_memory() {
  KeepLastError keep;
  MEMORYSTATUSEX status = {};
  status.dwLength = sizeof(status);
  return GlobalMemoryStatusEx(&status) ? status.ullTotalPhys : 0;
}

bool is_under_pressure() {
  static constinit std::atomic<HANDLE> low{nullptr};
  KeepLastError keep;
  HANDLE handle = low.load(std::memory_order_relaxed);
  if (handle == nullptr) {
    HANDLE made = CreateMemoryResourceNotification(LowMemoryResourceNotification), none = nullptr;
    if (made == nullptr) return false;
    handle = made;
    if (!low.compare_exchange_strong(none, made)) {
      CloseHandle(made);
      handle = none;
    }
  }
  BOOL is_low = FALSE;
  return QueryMemoryResourceNotification(handle, &is_low) && is_low;
}

}  // namespace rh::platform
