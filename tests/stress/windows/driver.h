// What these tests share: they start programs, plain or with reheap.dll, and are without it themselves.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support.h"

namespace heap_stress {

using launch_test::Ended;
using launch_test::program;
using launch_test::start;

// A variable of this process's environment, and so of those it starts, until the end of the scope.
class Variable {
 public:
  Variable(const wchar_t* name, const std::wstring& value) : name_(name) {
    SetEnvironmentVariableW(name, value.c_str());
  }
  ~Variable() { SetEnvironmentVariableW(name_, nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const wchar_t* const name_;
};

// What a variable of the environment says, or what is usual.
std::wstring setting(const wchar_t* variable, const wchar_t* usual);
unsigned number(const wchar_t* variable, unsigned usual);

// Up to and with "--".
std::wstring launched(const std::wstring& options = L"");

// reheap.dll beside the launcher.
std::wstring library_path();

std::wstring stress(unsigned threads, const std::wstring& seconds, const std::wstring& expected);

// Ends with this code, and says nothing is wrong.
void expect_end(const std::wstring& line, DWORD code = 0, const launch_test::Start& how = {});

}  // namespace heap_stress
