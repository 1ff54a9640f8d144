// The real reheap.dll: it comes in without a trace in the headers, and goes with the processes that are started.

#include "images.h"
#include "support.h"

#include <gtest/gtest.h>

namespace launch_test {
namespace {

// `reheap run` with the library that lies beside the launcher.
std::wstring run(const std::wstring& options = L"") { return launcher() + L" run --require " + options + L" -- "; }

// Ends with 1 in a process with reheap.dll.
std::wstring asks() { return program(L"show.exe") + L" has=reheap.dll"; }

DWORD code_of(const std::wstring& line) {
  const Ended ended = start(line);
  EXPECT_EQ(ended.errors, "to stderr\r\n");
  return ended.code;
}

std::wstring started_by(const std::wstring& form) { return program(L"starter.exe") + L" " + form + L" "; }

constexpr const wchar_t* kForms[] = {L"wide", L"suspended", L"as_user", L"narrow", L"system"};

TEST(Library, ComesIn) {
  EXPECT_EQ(code_of(run() + asks()), 1u);
  EXPECT_EQ(code_of(asks()), 0u);
}

TEST(Library, ComesInEveryTime) {
  int reached = 0;
  for (int time = 0; time < 30; ++time) reached += code_of(run() + asks()) == 1;
  EXPECT_EQ(reached, 30);
}

TEST(Library, AnswersTheDoctor) {
  const Ended ended = start(launcher() + L" doctor -- " + asks());
  EXPECT_EQ(ended.code, 0u) << ended.output << ended.errors;
  EXPECT_NE(ended.output.find("overridden"), std::string::npos) << ended.output;
}

TEST(Library, PutsTheHeadersBack) {
  const std::wstring line = program(L"show.exe") + L" headers";
  const std::string plain = start(line).output;
  EXPECT_NE(plain.find("directory"), std::string::npos);
  EXPECT_EQ(plain, start(run() + line).output);
  // The control: the stand-in leaves them as the launcher made them.
  EXPECT_NE(plain, start(run_with_probe() + line).output);
}

TEST(Children, FollowInEveryForm) {
  for (const wchar_t* form : kForms) {
    EXPECT_EQ(code_of(run() + started_by(form) + asks()), 1u) << form;
    EXPECT_EQ(code_of(run(L"--children") + started_by(form) + asks()), 1u) << form;
  }
}

TEST(Children, StayPlainWhenAsked) {
  for (const wchar_t* form : kForms) EXPECT_EQ(code_of(run(L"--no-children") + started_by(form) + asks()), 0u) << form;
}

TEST(Children, FollowThroughGenerations) {
  EXPECT_EQ(code_of(run() + started_by(L"wide") + started_by(L"narrow") + started_by(L"wide") + asks()), 1u);
  EXPECT_EQ(code_of(run() + L"cmd.exe /s /c \"" + started_by(L"wide") + asks() + L"\""), 1u);
}

// Of two launchers the inner one's options hold.
TEST(Children, MayBeLaunchedAgainWithOtherOptions) {
  EXPECT_EQ(code_of(run() + run(L"--no-children") + started_by(L"wide") + asks()), 0u);
  EXPECT_EQ(code_of(run(L"--no-children") + run() + started_by(L"wide") + asks()), 1u);
  EXPECT_EQ(start(run() + run() + program(L"uses_short.exe")).code, 125u);
  const std::wstring quiet = launcher() + L" run --quiet -- " + program(L"uses_short.exe");
  EXPECT_EQ(start(run() + quiet).code, 42u);
  EXPECT_EQ(start(run() + quiet).errors, "");
  const Attached attached;
  EXPECT_EQ(start(run() + run_with_probe(L"--require") + program(L"silent.exe")).code, 42u);
  EXPECT_EQ(attached.lines(), before_any_runtime());
}

// A launcher among them does not bring the library in a second time.
TEST(Children, MayBeLaunchedAgain) {
  EXPECT_EQ(code_of(run() + started_by(L"wide") + run() + asks()), 1u);
  EXPECT_EQ(code_of(run() + started_by(L"wide") + run(L"--no-children") + asks()), 1u);
}

TEST(Children, KeepTheirExitCodesAndErrors) {
  EXPECT_EQ(code_of(run() + started_by(L"wide") + program(L"show.exe") + L" exit=77"), 77u);
  // What cannot be started is told as ever.
  EXPECT_EQ(start(run() + started_by(L"wide") + L"no-such-program").code, 253u);
}

TEST(Children, ThatCannotBeReachedRunUnchanged) {
  const Ended ended = start(run() + started_by(L"wide") + program(L"go_like.exe"));
  EXPECT_EQ(ended.code, 42u);
  EXPECT_EQ(ended.errors, "");
}

// Programs of the other architecture, where that was built too.
class OtherArchitecture : public testing::Test {
 protected:
  void SetUp() override {
    if (GetFileAttributesW(program_path(other_show).c_str()) == INVALID_FILE_ATTRIBUTES)
      GTEST_SKIP() << "there is no build for the other architecture";
    ASSERT_TRUE(installation_.is_whole());
    if (!can_start_it()) GTEST_SKIP() << "this system runs no program of the other architecture";
  }
  static constexpr const wchar_t* other_show = L"" OTHER_FROM_PROGRAMS L"/show.exe";
  static constexpr const wchar_t* other_starter = L"" OTHER_FROM_PROGRAMS L"/starter.exe";

  static std::wstring other_asks() {
    return program(other_show) + (sizeof(void*) == 8 ? L" has=reheap32.dll" : L" has=reheap64.dll");
  }
  static std::wstring asks() { return program(L"show.exe") + L" has=reheap.dll"; }

  std::wstring run(const std::wstring& options = L"") const {
    return installation_.launcher() + L" run --require " + options + L" -- ";
  }
  const Installation& installation() const { return installation_; }

 private:
  Installation installation_;

  static bool can_start_it() {
    try {
      return start(other_asks()).errors == "to stderr\r\n";
    } catch (const std::exception&) {
      return false;
    }
  }
};

TEST_F(OtherArchitecture, IsReached) { EXPECT_EQ(code_of(run() + other_asks()), 1u); }

TEST_F(OtherArchitecture, IsFollowedFromOneToTheOther) {
  EXPECT_EQ(code_of(run() + started_by(L"wide") + other_asks()), 1u);
  EXPECT_EQ(code_of(run() + program(other_starter) + L" wide " + asks()), 1u);
  EXPECT_EQ(code_of(run(L"--no-children") + started_by(L"wide") + other_asks()), 0u);
}

TEST_F(OtherArchitecture, RunsUnchangedWhereItsLibraryDoesNotLoad) {
  std::string file = read_file(installation().other_library());
  write_file(installation().other_library(), file.substr(0, file.size() / 2));
  EXPECT_EQ(code_of(run() + started_by(L"wide") + other_asks()), 0u);
  lose_dependency(file);
  write_file(installation().other_library(), file);
  EXPECT_EQ(code_of(run() + started_by(L"suspended") + other_asks()), 0u);
  EXPECT_EQ(start(run() + other_asks()).code, 125u);
}

TEST_F(OtherArchitecture, IsExamined) {
  const Ended ended = start(installation().launcher() + L" doctor -- " + program(other_show));
  EXPECT_EQ(ended.code, 0u) << ended.output << ended.errors;
}

}  // namespace
}  // namespace launch_test
