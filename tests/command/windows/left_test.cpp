// A program with a C runtime that cannot be replaced: reheap.dll is in it, and that is not enough.

#include "images.h"
#include "support.h"

#include <gtest/gtest.h>

namespace launch_test {
namespace {

Ended run_short(const std::wstring& options) {
  return start(launcher() + L" run " + options + L" -- " + program(L"uses_short.exe"));
}

TEST(Left, IsToldInOneLine) {
  const Ended ended = run_short(L"");
  EXPECT_EQ(ended.code, 42u);
  EXPECT_TRUE(ended.errors.starts_with("reheap: msvcr70d.dll at ")) << ended.errors;
  EXPECT_NE(ended.errors.find("left, it must be replaced whole"), std::string::npos);
  EXPECT_EQ(ended.errors.find('\n'), ended.errors.size() - 1) << ended.errors;
}

TEST(Left, IsNotToldWhenNothingWasWanted) {
  for (const wchar_t* options : {L"--quiet", L"--layers none", L"--layers heap"}) {
    const Ended ended = run_short(options);
    EXPECT_EQ(ended.code, 42u) << ended.errors;
    EXPECT_EQ(ended.errors, "");
  }
}

TEST(Left, KeepsAProgramFromRunningWhereAllIsRequired) {
  const Ended ended = run_short(L"--require");
  EXPECT_EQ(ended.code, 125u);
  EXPECT_NE(ended.errors.find("msvcr70d.dll"), std::string::npos) << ended.errors;
  EXPECT_NE(ended.errors.find("not run, because of --require"), std::string::npos) << ended.errors;
  EXPECT_EQ(run_short(L"--require --layers heap").code, 42u);
}

// A value that is too long to be taken is told, however long it is.
TEST(Left, TellsOptionsThatAreTooLong) {
  for (const std::size_t length : {480u, 512u, 5000u}) {
    SetEnvironmentVariableW(L"REHEAP_STATS", std::wstring(length, L's').c_str());
    const Ended ended = start(launcher() + L" run -- " + program(L"silent.exe"));
    SetEnvironmentVariableW(L"REHEAP_STATS", nullptr);
    EXPECT_EQ(ended.code, 42u);
    EXPECT_TRUE(ended.errors.starts_with("reheap: REHEAP_STATS=sss")) << ended.errors;
    EXPECT_NE(ended.errors.find("is not possible; allowed: 1 (to stderr), 0"), std::string::npos) << ended.errors;
  }
}

TEST(Left, IsWhatTheDoctorTells) {
  const Ended ended = start(launcher() + L" doctor -- " + program(L"uses_short.exe"));
  for (const char* part : {"C runtime     msvcr70d", "inside        ntdll.dll at ", ": replaced heap (",
                           "left base because _expand is too short"})
    EXPECT_NE(ended.output.find(part), std::string::npos) << part << "\n" << ended.output;
}

// However the library comes in: here, as an import for good, before the program came to be Cygwin's.
TEST(Left, IsEverythingBesideCygwinsLibrary) {
  const Folder folder;
  folder.copy(program_path(L"msvcr70d.dll"), L"cygwin1.dll");
  folder.copy(program_path(L"uses_short.exe"), L"app.exe");
  const std::wstring app = L"\"" + folder.path(L"app.exe") + L"\"";
  const Ended patch = start(launcher() + L" patch --copy-dll " + app);
  ASSERT_EQ(patch.code, 0u) << patch.errors;
  std::string file = read_file(folder.path(L"app.exe"));
  import_instead(file, "cygwin1.dll");
  write_file(folder.path(L"app.exe"), file);
  SetEnvironmentVariableW(L"REHEAP_VERBOSE", L"1");
  const Ended ended = start(app);
  SetEnvironmentVariableW(L"REHEAP_VERBOSE", nullptr);
  EXPECT_EQ(ended.code, 42u) << ended.errors;
  EXPECT_NE(ended.errors.find("everything is left to Cygwin"), std::string::npos) << ended.errors;
  EXPECT_NE(ended.errors.find("\"overridden\":false"), std::string::npos) << ended.errors;
}

// What the program starts is no concern of the launcher's.
TEST(Left, IsOfNoConcernInPrograms_ThatAreStarted) {
  const Ended ended =
      start(launcher() + L" run --require -- " + program(L"starter.exe") + L" wide " + program(L"uses_short.exe"));
  EXPECT_EQ(ended.code, 42u);
  EXPECT_EQ(ended.errors, "");
}

}  // namespace
}  // namespace launch_test
