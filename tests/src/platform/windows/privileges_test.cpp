// A process with more rights than the one that started it.
#include <gtest/gtest.h>

#include <string>

#include "platform/platform.h"
#include "threads.h"

namespace rh {
namespace {

constexpr DWORD kCannot = 77;

// The user's other token, to start a process with; null where the system does not provide it.
HANDLE other_token() {
  HANDLE own = nullptr, primary = nullptr;
  TOKEN_LINKED_TOKEN other = {};
  DWORD length = 0;
  OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &own);
  if (GetTokenInformation(own, TokenLinkedToken, &other, sizeof other, &length)) {
    DuplicateTokenEx(other.LinkedToken, TOKEN_ALL_ACCESS, nullptr, SecurityImpersonation, TokenPrimary, &primary);
    CloseHandle(other.LinkedToken);
  }
  CloseHandle(own);
  return primary;
}

// Runs one of the tests below in a separate process with the other token; returns its exit code.
DWORD run_with_other_token(const std::string& test) {
  HANDLE token = other_token();
  if (token == nullptr) return kCannot;
  char path[MAX_PATH];
  GetModuleFileNameA(nullptr, path, sizeof path);
  std::string line =
      std::string("\"") + path + "\" --gtest_also_run_disabled_tests --gtest_brief=1 --gtest_filter=" + test;
  STARTUPINFOA startup = {};
  startup.cb = sizeof startup;
  PROCESS_INFORMATION made = {};
  DWORD code = kCannot;
  if (CreateProcessAsUserA(token, path, line.data(), nullptr, nullptr, TRUE, 0, nullptr, nullptr, &startup, &made)) {
    WaitForSingleObject(made.hProcess, INFINITE);
    GetExitCodeProcess(made.hProcess, &code);
    CloseHandle(made.hProcess);
    CloseHandle(made.hThread);
  }
  CloseHandle(token);
  return code;
}

TEST(PrivilegesTest, DISABLED_Limited) {
  EXPECT_STREQ(platform::environment("RH_TEST"), "one");
  DWORD code = run_with_other_token("PrivilegesTest.DISABLED_Raised");
  if (code == kCannot) GTEST_SKIP() << "only Wine lets it raise itself";
  EXPECT_EQ(code, 0u);
}

TEST(PrivilegesTest, DISABLED_Raised) { EXPECT_EQ(platform::environment("RH_TEST"), nullptr); }

TEST(PrivilegesTest, TheEnvironmentOfAProcessThatALimitedOneHadElevatedIsIgnored) {
  SetEnvironmentVariableW(L"RH_TEST", L"one");
  EXPECT_STREQ(platform::environment("RH_TEST"), "one") << "started by somebody with as many rights";
  DWORD code = run_with_other_token("PrivilegesTest.DISABLED_Limited");
  if (code == kCannot) GTEST_SKIP() << "the system gives no process the other token";
  EXPECT_EQ(code, 0u);
}

}  // namespace
}  // namespace rh
