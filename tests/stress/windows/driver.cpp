#include "driver.h"

#include <filesystem>

namespace heap_stress {
namespace {

// Strings are to be freed when they are freed: oleaut32 would keep some.
const Variable g_no_kept_strings(L"OANOCACHE", L"1");

}  // namespace

std::wstring setting(const wchar_t* variable, const wchar_t* usual) {
  const wchar_t* const text = _wgetenv(variable);
  return text ? text : usual;
}

unsigned number(const wchar_t* variable, unsigned usual) {
  return static_cast<unsigned>(std::stoul(setting(variable, std::to_wstring(usual).c_str())));
}

std::wstring launched(const std::wstring& options) {
  return launch_test::launcher() + L" run --require " + options + L" -- ";
}

std::wstring library_path() {
  return std::filesystem::path(launch_test::launcher_path()).replace_filename(L"reheap.dll").wstring();
}

std::wstring stress(unsigned threads, const std::wstring& seconds, const std::wstring& expected) {
  return program(L"stress.exe") + L" " + std::to_wstring(threads) + L" " + seconds + L" " + std::to_wstring(threads) +
         L" " + expected;
}

void expect_end(const std::wstring& line, DWORD code, const launch_test::Start& how) {
  const Ended ended = start(line, how);
  EXPECT_EQ(ended.code, code) << testing::PrintToString(line) << "\n" << ended.output << ended.errors;
  EXPECT_EQ(ended.errors, "");
  std::fputs(ended.output.c_str(), stdout);
}

}  // namespace heap_stress
