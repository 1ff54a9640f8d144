// A profile of a process that runs already, asked for from outside.

#include "support.h"

#include <gtest/gtest.h>
#include <thread>

namespace launch_test {
namespace {

// allocates.exe, for as long as this object is there.
class Allocating {
 public:
  explicit Allocating(const std::wstring& before) {
    SECURITY_ATTRIBUTES inherited = {sizeof inherited, nullptr, TRUE};
    HANDLE reads = nullptr;
    CreatePipe(&reads, &writes_, &inherited, 0);
    SetHandleInformation(writes_, HANDLE_FLAG_INHERIT, 0);
    STARTUPINFOW info = {};
    info.cb = sizeof info;
    info.dwFlags = STARTF_USESTDHANDLES;
    info.hStdInput = reads;
    info.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
    info.hStdError = GetStdHandle(STD_ERROR_HANDLE);
    std::wstring line = before + program(L"allocates.exe") + L" " + quoted(folder_.path(L"id"));
    EXPECT_TRUE(CreateProcessW(nullptr, line.data(), nullptr, nullptr, TRUE, 0, nullptr, nullptr, &info, &made_));
    CloseHandle(reads);
    while (id_.empty() && WaitForSingleObject(made_.hProcess, 10) == WAIT_TIMEOUT) {
      const std::string text = read_file(folder_.path(L"id"));
      if (text.ends_with(".")) id_ = std::wstring(text.begin(), text.end() - 1);
    }
    EXPECT_FALSE(id_.empty());
  }
  Allocating(const Allocating&) = delete;
  Allocating& operator=(const Allocating&) = delete;
  ~Allocating() {
    EXPECT_EQ(end(), 7u);
    CloseHandle(made_.hThread);
    CloseHandle(made_.hProcess);
  }

  DWORD end() {
    if (writes_ != nullptr) CloseHandle(writes_);
    writes_ = nullptr;
    DWORD code = 0;
    WaitForSingleObject(made_.hProcess, INFINITE);
    GetExitCodeProcess(made_.hProcess, &code);
    return code;
  }

  Ended profile(const std::wstring& options) const {
    return start(launcher() + L" profile --pid " + id_ + L" " + options);
  }

 private:
  Folder folder_;
  HANDLE writes_ = nullptr;
  PROCESS_INFORMATION made_ = {};
  std::wstring id_;
};

void expect_failure(const Ended& ended, DWORD code, const std::string& told) {
  EXPECT_EQ(ended.code, code);
  EXPECT_NE(ended.errors.find(told), std::string::npos) << ended.errors;
}

TEST(Profile, IsMadeOfAProcessThatRuns) {
  const Folder folder;
  const std::wstring file = folder.path(L"a profile.pb.gz");
  Allocating program(launcher() + L" run -- ");
  for (int turn = 0; turn < 2; ++turn) {
    const Ended ended = program.profile(L"--seconds 0.2 --rate 4K -o " + quoted(file));
    EXPECT_EQ(ended.code, 0u) << ended.errors;
    EXPECT_NE(ended.errors.find("wrote "), std::string::npos) << ended.errors;
    const std::string bytes = read_file(file);
    EXPECT_EQ(bytes.substr(0, 2), "\x1f\x8b");
    EXPECT_GT(bytes.size(), 400u);
    DeleteFileW(file.c_str());
  }
  expect_failure(program.profile(L"--seconds 0 -o " + quoted(folder.path(L"none\\file"))), 125, "could not write");
  EXPECT_EQ(program.profile(L"--seconds 0 -o " + quoted(file)).code, 0u);
}

TEST(Profile, SaysWhyThereIsNone) {
  expect_failure(start(launcher() + L" profile"), 2, "--pid");
  expect_failure(start(launcher() + L" profile --pid 1 -- x"), 2, "run --profile");
  for (const wchar_t* none : {L"\"\"", L"0", L"x", L"-4", L"1.5", L"99999999999"})
    expect_failure(start(launcher() + L" profile --pid " + none), 2, "not in range 1 to 4294967295");
  expect_failure(start(launcher() + L" profile --pid 99999999"), 125, "process 99999999: there is no such process");
  for (const wchar_t* seconds : {L"x", L"-1", L"1e9", L"nan"})
    expect_failure(start(launcher() + L" profile --pid 4 --seconds " + seconds), 2, "--seconds");
  const Allocating plain(L"");
  expect_failure(plain.profile(L"--seconds 0"), 125, "does not run on this reheap.dll");
  const Allocating hardened(launcher() + L" run --hardened -- ");
  expect_failure(hardened.profile(L"--seconds 0"), 125, "hardened build");
}

TEST(Profile, ThatComesTooLateSaysSo) {
  Allocating program(launcher() + L" run -- ");
  std::thread later([&] {
    Sleep(1500);
    program.end();
  });
  expect_failure(program.profile(L"--seconds 600"), 125, "has ended");
  later.join();
}

}  // namespace
}  // namespace launch_test
