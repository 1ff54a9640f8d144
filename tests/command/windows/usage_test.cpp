// The launcher's own words, mistakes and answers.

#include "support.h"

#include <cstdio>
#include <gtest/gtest.h>

namespace launch_test {
namespace {

Ended call(const std::wstring& words) { return start(launcher() + L" " + words); }

// PATH for as long as this object is there.
class SearchPath {
 public:
  explicit SearchPath(const std::wstring& path) {
    before_.resize(GetEnvironmentVariableW(L"PATH", before_.data(), static_cast<DWORD>(before_.size())));
    SetEnvironmentVariableW(L"PATH", path.c_str());
  }
  ~SearchPath() { SetEnvironmentVariableW(L"PATH", before_.c_str()); }
  SearchPath(const SearchPath&) = delete;
  SearchPath& operator=(const SearchPath&) = delete;

 private:
  std::wstring before_ = std::wstring(32768, L'\0');
};

void expect_mistake(const std::wstring& words, const std::string& told) {
  const Ended ended = call(words);
  EXPECT_EQ(ended.code, 2u);
  EXPECT_EQ(ended.output, "");
  EXPECT_TRUE(ended.errors.starts_with("reheap: ")) << ended.errors;
  EXPECT_NE(ended.errors.find(told), std::string::npos) << ended.errors;
}

TEST(Usage, TellsMistakes) {
  expect_mistake(L"", "say what to do");
  expect_mistake(L"walk", "walk");
  expect_mistake(L"run", "say what to run");
  expect_mistake(L"run --", "say what to run");
  expect_mistake(L"run show.exe", "put -- before the program");
  expect_mistake(L"run --fast -- show.exe", "unknown option --fast");
  expect_mistake(L"run --dll", "--dll");
  expect_mistake(L"doctor --", "say what to examine");
  expect_mistake(L"enter 1 2", "enter");
  expect_mistake(L"patch show.exe -o \"\"", "--output");
  expect_mistake(L"patch \"\"", "empty name");
  expect_mistake(L"run --dll \"\" -- show.exe", "empty name");
  for (const wchar_t* size : {L"-1", L"99999999999999999999", L"20E", L"1x", L"k"})
    expect_mistake(std::wstring(L"profile --pid 1 --rate ") + size, "--rate");
}

TEST(Usage, TellsWhatThereIs) {
  EXPECT_NE(call(L"--help").output.find("doctor"), std::string::npos);
  EXPECT_NE(call(L"run --help").output.find("--no-children"), std::string::npos);
  EXPECT_EQ(call(L"--version").output, "reheap " LAUNCHER_VERSION "\r\n");
  EXPECT_EQ(call(L"--version").code, 0u);
}

TEST(Usage, TellsAMissingProgramFromOneThatCannotStart) {
  EXPECT_EQ(start(run_with_probe() + L"no-such-program").code, 127u);
  EXPECT_EQ(start(run_with_probe() + L".\\no\\such.exe").code, 127u);
  const Folder folder;
  write_file(folder.path(L"text.exe"), "this is no program");
  const Ended ended = start(run_with_probe() + L"\"" + folder.path(L"text.exe") + L"\"");
  EXPECT_EQ(ended.code, 126u);
  EXPECT_NE(ended.errors.find("text.exe"), std::string::npos) << ended.errors;
  EXPECT_EQ(ended.errors.find("%1"), std::string::npos) << ended.errors;
}

// What Wine says of it is that a path is missing.
TEST(Usage, TellsAProgramOfDosFromOneThatIsMissing) {
  const Folder folder;
  write_file(folder.path(L"dos.exe"), "MZ" + std::string(126, '\0'));
  const Ended ended = start(run_with_probe() + quoted(folder.path(L"dos.exe")));
  EXPECT_EQ(ended.code, 126u);
  EXPECT_NE(ended.errors.find("dos.exe cannot be started: "), std::string::npos) << ended.errors;
}

TEST(Usage, TellsALibraryThatIsNone) {
  for (const std::wstring& library : {std::wstring(L"no-such.dll"), program(L"show.exe")}) {
    const Ended ended = call(L"run --dll " + library + L" -- " + program(L"show.exe"));
    EXPECT_EQ(ended.code, 125u);
    EXPECT_EQ(ended.output, "");
    EXPECT_NE(ended.errors.find("is no library"), std::string::npos) << ended.errors;
  }
}

TEST(Usage, TheHardenedLibraryIsNoOther) {
  const Ended both = call(L"run --hardened --dll " + program(L"probe.dll") + L" -- " + program(L"show.exe"));
  EXPECT_EQ(both.code, 125u);
  EXPECT_NE(both.errors.find("--hardened and --dll"), std::string::npos) << both.errors;
  const Folder folder;
  folder.copy(launcher_path(), L"reheap.exe");
  const Ended lonely = start(L"\"" + folder.path(L"reheap.exe") + L"\" run --hardened -- " + program(L"show.exe"));
  EXPECT_EQ(lonely.code, 125u);
  EXPECT_NE(lonely.errors.find("no reheap-hardened.dll"), std::string::npos) << lonely.errors;
}

TEST(Usage, FindsProgramsAsTheShellDoes) {
  const Folder folder;
  folder.copy(program_path(L"silent.exe"), L"quiet.exe");
  write_file(folder.path(L"batch.cmd"), "@exit /b 17\r\n");
  Start there;
  there.folder = folder.path();
  EXPECT_EQ(start(run_with_probe() + L"quiet", there).code, 42u);
  EXPECT_EQ(start(run_with_probe() + L"quiet.exe", there).code, 42u);
  EXPECT_EQ(start(run_with_probe() + L".\\quiet", there).code, 42u);
  EXPECT_EQ(start(run_with_probe() + L"batch", there).code, 17u);
  EXPECT_EQ(start(run_with_probe() + L"cmd /c exit 5", there).code, 5u);
}

TEST(Usage, PrefersTheProgramForConsoles) {
  const Folder folder;
  folder.copy(program_path(L"silent.exe"), L"twin.com");
  folder.copy(program_path(L"show.exe"), L"twin.exe");
  Start there;
  there.folder = folder.path();
  EXPECT_EQ(start(run_with_probe() + L"twin", there).code, 42u);
  EXPECT_EQ(start(run_with_probe() + L".\\twin", there).code, 42u);
  EXPECT_EQ(start(run_with_probe() + L"twin.exe", there).code, 0u);
}

TEST(Usage, FindsProgramsInFoldersOfAnyName) {
  const Folder folder(L"; and more");
  folder.copy(program_path(L"silent.exe"), L"quiet.exe");
  const SearchPath path(L"C:\\nowhere;" + quoted(folder.path()) + L";C:\\windows");
  EXPECT_EQ(start(run_with_probe() + L"quiet").code, 42u);
  EXPECT_EQ(start(run_with_probe() + L"cmd /c exit 5").code, 5u);
}

TEST(Usage, TakesAPathWithoutExtensionAsItIs) {
  const Folder folder;
  folder.copy(program_path(L"silent.exe"), L"bare");
  Start there;
  there.folder = folder.path();
  EXPECT_EQ(start(run_with_probe() + L".\\bare", there).code, 42u);
  EXPECT_EQ(start(run_with_probe() + L"bare", there).code, 127u);
  write_file(folder.path(L"bare.cmd"), "@exit /b 17\r\n");
  EXPECT_EQ(start(run_with_probe() + L".\\bare", there).code, 17u);
  write_file(folder.path(L"text"), "this is no program");
  EXPECT_EQ(start(run_with_probe() + L".\\text", there).code, 126u);
}

// A variable as show writes it.
std::string shown(const std::wstring& variable) {
  std::string text = "variable ";
  char digits[8];
  for (const wchar_t character : variable) {
    snprintf(digits, sizeof digits, "%04x", static_cast<unsigned>(character));
    text += digits;
  }
  return text + "\n";
}

TEST(Usage, HandsOptionsToTheLibrary) {
  const std::string output = start(run_with_probe(L"--decay-ms 7 --stats") + program(L"show.exe")).output;
  EXPECT_NE(output.find(shown(L"REHEAP_DECAY_MS=7")), std::string::npos);
  EXPECT_NE(output.find(shown(L"REHEAP_STATS=1")), std::string::npos);
}

TEST(Doctor, ExaminesAProgram) {
  const Attached attached;
  const Ended ended = call(L"doctor --dll " + program(L"probe.dll") + L" -- " + program(L"show.exe") + L" exit=9");
  EXPECT_EQ(ended.code, 0u) << ended.output << ended.errors;
  for (const char* part : {"kind          native", "malloc", "inside        nothing was replaced",
                           "entered       first import", "reached       yes"})
    EXPECT_NE(ended.output.find(part), std::string::npos) << part << "\n" << ended.output;
  EXPECT_EQ(attached.lines(), before_any_runtime());
}

TEST(Doctor, ExaminesTheInstallation) {
  const Ended ended = call(L"doctor --json --dll " + program(L"probe.dll"));
  EXPECT_EQ(ended.code, 0u) << ended.output << ended.errors;
  EXPECT_NE(ended.output.find("\"reached\": true"), std::string::npos) << ended.output;
}

TEST(Doctor, TellsTheHardenedBuild) {
  const Ended ended = call(L"doctor --json --hardened --strict -- " + program(L"show.exe"));
  if (ended.errors.find("no reheap-hardened.dll") != std::string::npos) GTEST_SKIP() << "it was not built";
  EXPECT_EQ(ended.code, 0u) << ended.output << ended.errors;
  for (const char* part : {"\"hardened\": true", "\"strict\": true", "reheap-hardened.dll"})
    EXPECT_NE(ended.output.find(part), std::string::npos) << part << "\n" << ended.output;
}

// The names in a program's file are in no encoding that anybody has agreed on.
TEST(Doctor, WritesJsonWhateverNamesThereAre) {
  std::string file = read_file(program_path(L"uses_short.exe"));
  const std::size_t at = file.find("msvcr70d.dll");
  ASSERT_NE(at, std::string::npos);
  file[at] = '\xe9';
  const Folder folder;
  write_file(folder.path(L"named.exe"), file);
  const Ended ended =
      call(L"doctor --json --dll " + program(L"probe.dll") + L" -- \"" + folder.path(L"named.exe") + L"\"");
  EXPECT_EQ(ended.code, 1u) << ended.errors;
  EXPECT_EQ(ended.errors, "");
  EXPECT_NE(ended.output.find("\"\xef\xbf\xbdsvcr70d.dll\""), std::string::npos) << ended.output;
}

TEST(Doctor, TellsWhatCannotBeReached) {
  const Ended ended = call(L"doctor --dll " + program(L"probe.dll") + L" -- " + program(L"go_like.exe"));
  EXPECT_EQ(ended.code, 1u);
  EXPECT_NE(ended.output.find("kind          Go"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("reached       no: it is a Go program"), std::string::npos);
}

// A program must not run because a library does not know that it is only being examined.
TEST(Doctor, RunsNothingUnderALibraryThatIsNotReheap) {
  const Ended ended = call(L"doctor --dll C:\\windows\\system32\\version.dll -- " + program(L"show.exe"));
  EXPECT_EQ(ended.code, 1u);
  EXPECT_NE(ended.output.find("is no reheap.dll"), std::string::npos) << ended.output;
}

}  // namespace
}  // namespace launch_test
