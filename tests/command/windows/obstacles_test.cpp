// What Wine has none of, made up in the launcher: protected processes, policies, no room. The launcher is launched
// itself, with a library that stands before the system's functions (programs/obstacles.c).

#include "support.h"

#include <gtest/gtest.h>

namespace launch_test {
namespace {

class Obstacle {
 public:
  explicit Obstacle(const wchar_t* name) { SetEnvironmentVariableW(L"OBSTACLE", name); }
  ~Obstacle() { SetEnvironmentVariableW(L"OBSTACLE", nullptr); }
  Obstacle(const Obstacle&) = delete;
  Obstacle& operator=(const Obstacle&) = delete;
};

std::wstring hindered(const std::wstring& options) {
  return launcher() + L" run --require --dll " + program(L"obstacles.dll") + L" -- " + run_with_probe(options) +
         program(L"silent.exe");
}

void expect_refused(const wchar_t* name, const std::string& reason) {
  const Obstacle obstacle(name);
  const Attached attached;
  const Ended left = start(hindered(L""));
  EXPECT_EQ(left.code, 42u);
  EXPECT_NE(left.errors.find(reason), std::string::npos) << left.errors;
  EXPECT_NE(left.errors.find("it runs unchanged\r\n"), std::string::npos) << left.errors;
  EXPECT_EQ(left.errors.find('\n'), left.errors.size() - 1) << left.errors;
  EXPECT_EQ(start(hindered(L"--quiet")).errors, "");
  const Ended refused = start(hindered(L"--require"));
  EXPECT_EQ(refused.code, 125u);
  EXPECT_NE(refused.errors.find(reason), std::string::npos) << refused.errors;
  EXPECT_EQ(attached.lines(), "");
}

TEST(Obstacles, AreNotThereByThemselves) {
  const Obstacle none(L"none");
  const Attached attached;
  EXPECT_EQ(start(hindered(L"--require")).code, 42u);
  EXPECT_EQ(attached.lines(), before_any_runtime());
}

TEST(Obstacles, LeavesAProtectedProcessAlone) { expect_refused(L"protected", "its memory cannot be read ("); }

TEST(Obstacles, LeavesAProcessAloneThatAdmitsOnlySignedLibraries) {
  expect_refused(L"signed", "its policy admits only signed libraries");
}

// What the launcher says, and that it does not start the program, once for each policy.
void expect_forbidden(const wchar_t* policy, const std::string& reason) {
  const Obstacle obstacle(policy);
  const Attached attached;
  const Ended refused = start(hindered(L"--require"));
  EXPECT_EQ(refused.code, 125u);
  EXPECT_NE(refused.errors.find(reason), std::string::npos) << refused.errors;
  EXPECT_EQ(attached.lines(), "");
}

TEST(Obstacles, LeavesAProcessAloneThatAdmitsOnlyGuardedLibraries) {
  expect_forbidden(L"guarded", "only libraries with a table for control-flow guard");
}

TEST(Obstacles, LeavesAProcessAloneThatAdmitsOnlyLibrariesForShadowStacks) {
  expect_forbidden(L"stacks", "only libraries made for shadow stacks");
}

TEST(Obstacles, LeavesAProcessAloneThatAdmitsNoLibrariesFromOtherMachines) {
  expect_forbidden(L"remote", "no libraries from another machine");
}

TEST(Obstacles, LeavesAProcessAloneThatForbidsNewCode) { expect_forbidden(L"code", "its policy forbids new code"); }

#ifdef GUARDED_FROM_PROGRAMS
TEST(Obstacles, LetsInTheLibraryMadeForSuchPolicies) {
  const std::string path = GUARDED_FROM_PROGRAMS;
  const std::wstring library = program(std::wstring(path.begin(), path.end()));
  for (const wchar_t* policy : {L"guarded", L"stacks"}) {
    const Obstacle obstacle(policy);
    const Ended ended = start(launcher() + L" run --require --dll " + program(L"obstacles.dll") + L" -- " + launcher() +
                              L" run --require --verbose --dll " + library + L" -- " + program(L"silent.exe"));
    EXPECT_EQ(ended.code, 42u) << ended.errors;
    EXPECT_NE(ended.errors.find("ntdll.dll at "), std::string::npos) << ended.errors;
  }
}
#endif

// The bits beside those, which every guarded program has.
TEST(Obstacles, MindsNoPolicyThatKeepsNothingOut) {
  const Obstacle obstacle(L"lenient");
  EXPECT_EQ(start(hindered(L"--require")).code, 42u);
}

// Where the list of imports cannot be, a call that loads the library can be neither.
TEST(Obstacles, LeavesAProcessAloneThatHasNoRoom) { expect_refused(L"full", "no free address space"); }

TEST(Obstacles, LeavesAProcessAloneThatCannotBeWritten) { expect_refused(L"locked", "its memory cannot be written"); }

}  // namespace
}  // namespace launch_test
