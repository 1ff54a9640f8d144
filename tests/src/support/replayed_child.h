// in_child without a fork: the program starts again with the same test, which arrives at the same place by itself. The
// results of earlier children are in the environment; they are repeated, not run again.
#pragma once

#include <gtest/gtest.h>
#include <windows.h>

#include <cstdlib>
#include <string>

namespace rh {

inline constexpr bool kForks = false;

struct Ending {
  int status;
  bool well(int code) const { return status == code; }
};

namespace replay {

constexpr const char* kVariable = "RH_UNIT_ENDINGS";

// The statuses of earlier children, one character each. In a child, all those before its own.
inline std::string& endings() {
  static std::string all;
  return all;
}

inline const std::string& given() {
  static const std::string text = [] {
    const char* value = std::getenv(kVariable);
    return std::string(value != nullptr ? value : "");
  }();
  return text;
}

inline bool is_child() { return std::getenv(kVariable) != nullptr; }

inline int run_again() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string filter = std::string("--gtest_filter=") + test->test_suite_name() + "." + test->name();
  char program[MAX_PATH];
  GetModuleFileNameA(nullptr, program, sizeof(program));
  std::string line = std::string("\"") + program + "\" " + filter;
  // Never empty, since an empty variable counts as unset: it begins with a mark.
  SetEnvironmentVariableA(kVariable, ("=" + endings()).c_str());
  STARTUPINFOA start = {};
  start.cb = sizeof(start);
  PROCESS_INFORMATION child = {};
  BOOL made = CreateProcessA(program, line.data(), nullptr, nullptr, TRUE, 0, nullptr, nullptr, &start, &child);
  SetEnvironmentVariableA(kVariable, nullptr);
  EXPECT_TRUE(made);
  DWORD status = 255;
  WaitForSingleObject(child.hProcess, INFINITE);
  GetExitCodeProcess(child.hProcess, &status);
  CloseHandle(child.hThread);
  CloseHandle(child.hProcess);
  return static_cast<int>(status);
}

}  // namespace replay

// The exit code is the result of `body`, from 0 to 9, or 10 when an expectation failed.
template <typename Body> Ending in_child(Body body) {
  std::string& before = replay::endings();
  if (replay::is_child()) {
    size_t number = before.size() + 1;
    if (number < replay::given().size()) {
      before += replay::given()[number];
      return {before.back() - '0'};
    }
    int code = body();
    std::fflush(nullptr);
    TerminateProcess(GetCurrentProcess(), static_cast<UINT>(testing::Test::HasFailure() ? 10 : code));
  }
  int status = replay::run_again();
  before += static_cast<char>('0' + (status >= 0 && status < 10 ? status : 10));
  return {status};
}

}  // namespace rh
