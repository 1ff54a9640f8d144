// Out of memory in HeapAlloc and private heaps (programs/limits.cpp).

#include "driver.h"

namespace heap_stress {
namespace {

constexpr std::size_t MiB = 1024 * 1024;

// A job that allows each of its processes no more than this.
HANDLE job_with(std::size_t bytes) {
  const HANDLE job = CreateJobObjectW(nullptr, nullptr);
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {};
  limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_PROCESS_MEMORY;
  limits.ProcessMemoryLimit = bytes;
  SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits);
  return job;
}

class HeapLimits : public testing::TestWithParam<const wchar_t*> {};

TEST_P(HeapLimits, AreKept) {
  const std::size_t most = 100 * MiB;
  const Variable limit(L"CONTRACT_COMMIT_LIMIT", std::to_wstring(most));
  launch_test::Start in_job;
  in_job.job = job_with(most);
  expect_end(launched() + program(L"limits.exe") + L" " + GetParam(), 0, in_job);
  CloseHandle(in_job.job);
}

INSTANTIATE_TEST_SUITE_P(Scenarios, HeapLimits,
                         testing::Values(L"process_heap_small", L"process_heap_mixed", L"private_heap_small",
                                         L"private_heap_mixed", L"destroyed_heap_gives_back",
                                         L"sizes_beyond_all_memory", L"exceptions", L"four_threads"),
                         [](const auto& parameter) {
                           const std::wstring name = parameter.param;
                           return std::string(name.begin(), name.end());
                         });

}  // namespace
}  // namespace heap_stress
