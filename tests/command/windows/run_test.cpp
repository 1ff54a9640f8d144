// What was the launcher's is the program's, unchanged: every test compares a plain start with one by the launcher.

#include "support.h"

#include <chrono>
#include <cstring>
#include <future>
#include <gtest/gtest.h>

namespace launch_test {
namespace {

// A start by the launcher ends as a plain one does, and the library was there.
void expect_same(const std::wstring& line, const Start& how = {}) {
  const Attached attached;
  const Ended plain = start(line, how);
  EXPECT_EQ(attached.lines(), "");
  const Ended launched = start(run_with_probe() + line, how);
  EXPECT_NE(plain.output, "");
  EXPECT_EQ(plain.output, launched.output);
  EXPECT_EQ(plain.errors, launched.errors);
  EXPECT_EQ(plain.code, launched.code);
  EXPECT_EQ(attached.lines(), before_any_runtime());
}

TEST(Run, PassesTheLineOnByteForByte) {
  const std::wstring show = program(L"show.exe");
  for (const wchar_t* words : {L"", L" ", L" a  b", L" \"\"", L" \"a b\" c", L" a\"b c\"d", L" \\\\\"x\\\" y\\\\",
                               L" \"unclosed", L" ^& | < > %PATH% !x!", L" -- -- --require", L"\t tab\t", L" *.c ?",
                               L" caf\u00e9 \u4e2d\u6587 \U0001F600 \xd800", L" --dll x", L" \"\"\"\" \"a\"\"b\""})
    expect_same(show + words);
}

TEST(Run, PassesALongLineOn) { expect_same(program(L"show.exe") + L" " + std::wstring(30000, L'x')); }

TEST(Run, PassesInputOutputAndErrorsOn) {
  Start how;
  how.input = std::string(100000, 'i');
  expect_same(program(L"show.exe"), how);
}

TEST(Run, PassesFilesOnAsStreams) {
  // By way of cmd.exe, which opens them.
  const Folder folder;
  write_file(folder.path(L"in"), "from a file");
  const std::wstring redirected =
      L" <\"" + folder.path(L"in") + L"\" >\"" + folder.path(L"out") + L"\" 2>\"" + folder.path(L"err") + L"\"";
  const auto run = [&](const std::wstring& line) {
    EXPECT_EQ(start(L"cmd.exe /s /c \"" + line + redirected + L"\"").code, 9u);
    return read_file(folder.path(L"out")) + read_file(folder.path(L"err"));
  };
  const std::string plain = run(program(L"show.exe") + L" exit=9");
  EXPECT_NE(plain.find("input from a file"), std::string::npos);
  EXPECT_EQ(plain, run(run_with_probe() + program(L"show.exe") + L" exit=9"));
}

TEST(Run, PassesTheExitCodeOn) {
  for (const wchar_t* code : {L"0", L"1", L"125", L"256", L"0xC0000005", L"0xFFFFFFFF", L"259"})
    expect_same(program(L"show.exe") + L" exit=" + code);
  expect_same(program(L"show.exe") + L" abort");
}

TEST(Run, PassesEnvironmentAndFolderOn) {
  SetEnvironmentVariableW(L"LAUNCH_TEST", L"va=lue \u4e2d");
  Start how;
  const Folder folder(L" with blanks \u00e9");
  how.folder = folder.path();
  expect_same(program(L"show.exe"), how);
  SetEnvironmentVariableW(L"LAUNCH_TEST", nullptr);
}

TEST(Run, PassesPriorityTitleAndJobOn) {
  Start how;
  how.title = L"a title";
  how.flags = HIGH_PRIORITY_CLASS;
  expect_same(program(L"show.exe"), how);
  how.flags = IDLE_PRIORITY_CLASS;
  how.job = CreateJobObjectW(nullptr, nullptr);
  expect_same(program(L"show.exe"), how);
  const std::string output = start(run_with_probe() + program(L"show.exe"), how).output;
  EXPECT_NE(output.find("job 1\n"), std::string::npos);
  CloseHandle(how.job);
}

struct InheritedPipe {
  HANDLE read_end = nullptr, write_end = nullptr;
  InheritedPipe() {
    SECURITY_ATTRIBUTES inherited = {sizeof inherited, nullptr, TRUE};
    CreatePipe(&read_end, &write_end, &inherited, 0);
    SetHandleInformation(read_end, HANDLE_FLAG_INHERIT, 0);
  }
  ~InheritedPipe() { CloseHandle(read_end); }
  std::string read() const {
    char text[32] = {};
    DWORD length = 0;
    ReadFile(read_end, text, sizeof text, &length, nullptr);
    return {text, length};
  }
  std::string received() {
    CloseHandle(write_end);
    return read();
  }
};

TEST(Run, PassesOtherHandlesOn) {
  InheritedPipe pipe;
  const auto handle = std::to_wstring(reinterpret_cast<std::size_t>(pipe.write_end));
  expect_same(program(L"show.exe") + L" exit=0");
  EXPECT_EQ(start(run_with_probe() + program(L"show.exe") + L" write=" + handle).code, 0u);
  EXPECT_EQ(pipe.received(), "inherited");
}

// The C runtimes' own way to hand on descriptors: how many, a flag and a handle for each.
std::vector<BYTE> descriptors_with(HANDLE fourth) {
  constexpr BYTE open_pipe = 0x01 | 0x08;
  const int count = 4;
  std::vector<BYTE> block(sizeof count + count + count * sizeof(HANDLE), 0);
  std::memcpy(block.data(), &count, sizeof count);
  block[sizeof count + 3] = open_pipe;
  std::memcpy(block.data() + sizeof count + count + 3 * sizeof fourth, &fourth, sizeof fourth);
  return block;
}

TEST(Run, PassesDescriptorsOfTheRuntimeOn) {
  InheritedPipe pipe;
  Start how;
  how.descriptors = descriptors_with(pipe.write_end);
  EXPECT_EQ(start(run_with_probe() + program(L"show.exe") + L" descriptor", how).code, 0u);
  EXPECT_EQ(pipe.received(), "inherited");
}

// Whether who reads from descriptor 3 sees its end a second before the program's.
bool outlives_descriptor(const std::wstring& line) {
  InheritedPipe pipe;
  Start how;
  how.descriptors = descriptors_with(pipe.write_end);
  auto ended = std::async(std::launch::async, [&] { return start(line + L" let-go", how).code; });
  EXPECT_EQ(pipe.read(), "inherited");
  EXPECT_EQ(pipe.received(), "");
  const bool outlived = ended.wait_for(std::chrono::seconds(1)) == std::future_status::timeout;
  EXPECT_EQ(ended.get(), 0u);
  return outlived;
}

TEST(Run, HoldsNoDescriptorOpen) {
  EXPECT_TRUE(outlives_descriptor(program(L"show.exe")));
  EXPECT_TRUE(outlives_descriptor(run_with_probe() + program(L"show.exe")));
}

TEST(Run, HoldsNoStreamOpen) {
  const std::wstring line = program(L"show.exe") + L" close";
  EXPECT_TRUE(start(line).outlived_output);
  EXPECT_TRUE(start(run_with_probe() + line).outlived_output);
}

}  // namespace
}  // namespace launch_test
