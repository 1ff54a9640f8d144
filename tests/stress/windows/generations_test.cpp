// Processes that start processes, several at a time, each under reheap with all its heaps (programs/generations.cpp);
// and the same start many times in a row.

#include "driver.h"

namespace heap_stress {
namespace {

std::wstring generations(const wchar_t* levels_width_expected) {
  return program(L"generations.exe") + L" " + levels_width_expected;
}

constexpr DWORD kOfThreeLevels = 1 + 3 + 9;

TEST(Generations, ArePlainWithoutALauncher) { expect_end(generations(L"3 3 plain"), kOfThreeLevels); }
TEST(Generations, AllHaveBothLayers) { expect_end(launched() + generations(L"3 3 both"), kOfThreeLevels); }

TEST(Generations, AllHaveTheLayerThatIsAskedFor) {
  for (const wchar_t* layers : {L"heap", L"crt"}) {
    const Variable chosen(L"REHEAP_LAYERS", layers);
    expect_end(launched() + generations((L"3 2 " + std::wstring(layers)).c_str()), 1 + 2 + 4);
  }
}

// The control: one that is not served is noticed at the top.
TEST(Generations, NoticeOneThatIsNotServed) {
  EXPECT_EQ(start(launched(L"--no-children") + generations(L"3 1 both")).code, 255u);
}

// Of the other architecture, where that was built too.
TEST(Generations, AlternateBetweenArchitectures) {
  const std::wstring other = launch_test::program_path(L"" OTHER_FROM_PROGRAMS L"/generations.exe");
  if (GetFileAttributesW(other.c_str()) == INVALID_FILE_ATTRIBUTES)
    GTEST_SKIP() << "there is no build for the other architecture";
  try {
    if (start(L"\"" + other + L"\" 1 1 plain").code != 1) GTEST_SKIP() << "it does not run by itself";
  } catch (const std::exception& problem) {
    GTEST_SKIP() << "this system runs no program of the other architecture: " << problem.what();
  }
  const launch_test::Installation installation;
  const std::wstring run = installation.launcher() + L" run --require -- ";
  expect_end(run + generations(L"3 2 both") + L" \"" + other + L"\"", 1 + 2 + 4);
  expect_end(run + L"\"" + other + L"\" 3 2 both " + program(L"generations.exe"), 1 + 2 + 4);
}

TEST(Launches, InARow) {
  const unsigned count = number(L"HEAP_STRESS_LAUNCHES", 20);
  unsigned served = 0;
  for (unsigned at = 0; at < count; ++at) served += start(launched() + generations(L"1 1 both")).code == 1;
  EXPECT_EQ(served, count);
}

}  // namespace
}  // namespace heap_stress
