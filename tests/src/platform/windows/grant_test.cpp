// What a job allows. Wine keeps no job's limits and tells of none: its answers are replaced here.
#include <gtest/gtest.h>

#include <cstring>

#include "last_error.h"
#include "platform/platform.h"

// Where the library finds the function.
#if defined(__x86_64__)
extern "C" void* import_of_query asm("__imp_QueryInformationJobObject");
#else
extern "C" void* import_of_query asm("__imp__QueryInformationJobObject@20");
#endif

namespace rh {
namespace {

using platform::Grant;

constexpr uint64_t kMiB = uint64_t{1} << 20;

JOBOBJECT_EXTENDED_LIMIT_INFORMATION g_job = {};
uint64_t g_in_job = 0;
bool g_refuses = false;

BOOL WINAPI answer(HANDLE job, JOBOBJECTINFOCLASS kind, void* to, DWORD size, DWORD*) {
  EXPECT_EQ(job, nullptr) << "the caller's own";
  SetLastError(ERROR_ACCESS_DENIED);
  if (g_refuses) return FALSE;
  if (kind == JobObjectExtendedLimitInformation && size == sizeof(g_job)) std::memcpy(to, &g_job, size);
  if (kind == static_cast<JOBOBJECTINFOCLASS>(28)) {
    if (g_in_job == 0) return FALSE;  // before Windows 10
    std::memcpy(to, &g_in_job, sizeof(g_in_job));
  }
  return TRUE;
}

class WindowsGrant : public testing::Test {
 protected:
  void SetUp() override {
    DWORD before = 0;
    ASSERT_TRUE(VirtualProtect(&import_of_query, sizeof(void*), PAGE_READWRITE, &before));
    import_of_query = reinterpret_cast<void*>(&answer);
    g_job = {};
    g_in_job = 0;
    g_refuses = false;
  }
};

Grant grant(uint64_t held) { return KEEPING_LAST_ERROR(platform::read_grant(held)); }

TEST_F(WindowsGrant, WithoutALimitThereIsNone) {
  EXPECT_EQ(grant(0).hard, Grant::kUnlimited);
  EXPECT_EQ(grant(0).least, Grant::kUnlimited);
  g_refuses = true;
  EXPECT_EQ(grant(0).hard, Grant::kUnlimited);
}

TEST_F(WindowsGrant, OfAProcessLessWhatItHasBeside) {
  g_job.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_PROCESS_MEMORY;
  g_job.ProcessMemoryLimit = 1024 * kMiB;
  g_job.JobMemoryLimit = kMiB;  // not among the flags
  const Grant with_nothing = grant(0), with_all = grant(512 * kMiB);
  EXPECT_EQ(with_nothing.least, 1024 * kMiB);
  EXPECT_LE(with_nothing.hard, 1024 * kMiB);
  EXPECT_EQ(with_all.hard, 1024 * kMiB) << "all that the process has is the heap's";
  EXPECT_EQ(with_all.soft, Grant::kUnlimited);
}

TEST_F(WindowsGrant, OfAJobLessWhatItsOthersHave) {
  g_job.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_PROCESS_MEMORY | JOB_OBJECT_LIMIT_JOB_MEMORY;
  g_job.ProcessMemoryLimit = 2048 * kMiB;
  g_job.JobMemoryLimit = 1024 * kMiB;
  EXPECT_EQ(grant(512 * kMiB).hard, 1024 * kMiB);
  EXPECT_EQ(grant(512 * kMiB).least, 1024 * kMiB);
  g_in_job = 700 * kMiB;
  EXPECT_EQ(grant(512 * kMiB).hard, (1024 - 188) * kMiB);
  g_in_job = 5000 * kMiB;
  EXPECT_EQ(grant(512 * kMiB).hard, 0u);
}

TEST(Machine, HasMemoryAndSaysWhetherItIsShort) {
  EXPECT_GT(KEEPING_LAST_ERROR(platform::machine_memory()), 64 * kMiB);
  for (int round = 0; round < 3; ++round) KEEPING_LAST_ERROR(platform::is_under_pressure());
}

}  // namespace
}  // namespace rh
