#include "figures.h"

#include <psapi.h>

#include "handle.h"
#include "wine.h"

namespace runner {
namespace {

constexpr DWORD kMostProcesses = 1024;

struct ProcessList {
  DWORD assigned;
  DWORD listed;
  ULONG_PTR ids[kMostProcesses];
};

std::int64_t microseconds(LARGE_INTEGER ticks) { return ticks.QuadPart / 10; }

std::int64_t kibibytes(size_t bytes) { return static_cast<std::int64_t>(bytes / 1024); }

std::optional<JOBOBJECT_BASIC_ACCOUNTING_INFORMATION> accounts_of(HANDLE job) {
  JOBOBJECT_BASIC_ACCOUNTING_INFORMATION used;
  if (under_wine() || !QueryInformationJobObject(job, JobObjectBasicAccountingInformation, &used, sizeof used, nullptr))
    return std::nullopt;
  return used;
}

// Of a process that has ended there is nothing to be had: it is not counted.
void add(Sample& look, DWORD id) {
  const Handle process(OpenProcess(PROCESS_QUERY_INFORMATION | PROCESS_VM_READ, FALSE, id));
  PROCESS_MEMORY_COUNTERS_EX memory;
  auto* plain = reinterpret_cast<PROCESS_MEMORY_COUNTERS*>(&memory);
  if (!process || !GetProcessMemoryInfo(process.get(), plain, sizeof memory)) return;
  if (memory.WorkingSetSize == 0) return;
  look.processes = look.processes.value_or(0) + 1;
  look.rss_kib = look.rss_kib.value_or(0) + kibibytes(memory.WorkingSetSize);
  if (!under_wine()) look.commit_kib = look.commit_kib.value_or(0) + kibibytes(memory.PrivateUsage);
}

}  // namespace

Figure used_by(HANDLE process) {
  FILETIME began, ended, system, user;
  if (under_wine() || !process || !GetProcessTimes(process, &began, &ended, &system, &user)) return std::nullopt;
  const auto us = [](FILETIME time) {
    return static_cast<std::int64_t>((std::uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime) / 10);
  };
  return us(system) + us(user);
}

std::vector<DWORD> processes_of(HANDLE job) {
  ProcessList list = {};
  // With more of them than there is room for, it lists those it can.
  if (!QueryInformationJobObject(job, JobObjectBasicProcessIdList, &list, sizeof list, nullptr) &&
      GetLastError() != ERROR_MORE_DATA)
    return {};
  return {list.ids, list.ids + (list.listed < kMostProcesses ? list.listed : kMostProcesses)};
}

Sample look_at(HANDLE job) {
  Sample look;
  for (const DWORD id : processes_of(job)) add(look, id);
  if (const auto used = accounts_of(job))
    look.cpu_us = microseconds(used->TotalUserTime) + microseconds(used->TotalKernelTime);
  return look;
}

void add_costs(HANDLE job, HANDLE process, End& end) {
  const auto used = accounts_of(job);
  if (!used) return;
  end.user_us = microseconds(used->TotalUserTime);
  end.system_us = microseconds(used->TotalKernelTime);
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits;
  if (QueryInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits, nullptr))
    end.peak_commit_kib = kibibytes(limits.PeakJobMemoryUsed);
  PROCESS_MEMORY_COUNTERS memory;
  if (GetProcessMemoryInfo(process, &memory, sizeof memory)) end.peak_rss_kib = kibibytes(memory.PeakWorkingSetSize);
}

}  // namespace runner
