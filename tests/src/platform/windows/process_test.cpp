// The process: environment, files, messages and ends.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "farewell.h"
#include "last_error.h"
#include "platform/platform.h"
#include "platform/report.h"
#include "threads.h"

namespace rh {
namespace {

using namespace platform;

TEST(Process, IsThisOne) {
  EXPECT_EQ(process_id(), GetCurrentProcessId());
  EXPECT_EQ(image_address(), reinterpret_cast<uintptr_t>(GetModuleHandleW(nullptr)));
}

TEST(Process, TimeGoesOnAndNeverBack) {
  uint64_t first = now_ms(), last = first;
  until([&] {
    uint64_t now = now_ms();
    EXPECT_GE(now, last);
    last = now;
    return now > first;
  });
}

TEST(Process, SeedsDiffer) {
  uint64_t seed = KEEPING_LAST_ERROR(random_seed());
  EXPECT_NE(random_seed(), seed);
}

// ---- the environment ----------------------------------------------------------------------------

TEST(Environment, IsReadAsItStands) {
  SetEnvironmentVariableW(L"RH_TEST", L"one");
  ASSERT_NE(KEEPING_LAST_ERROR(environment("RH_TEST")), nullptr);
  EXPECT_STREQ(environment("RH_TEST"), "one");
  SetEnvironmentVariableW(L"RH_TEST", L"C:\\\u00fcber \u20ac");
  EXPECT_STREQ(environment("RH_TEST"), "C:\\\xc3\xbc"
                                       "ber \xe2\x82\xac");
}

TEST(Environment, WithoutAValueIsNull) {
  SetEnvironmentVariableW(L"RH_TEST", nullptr);
  EXPECT_EQ(KEEPING_LAST_ERROR(environment("RH_TEST")), nullptr);
  SetEnvironmentVariableW(L"RH_TEST", L"");
  EXPECT_EQ(KEEPING_LAST_ERROR(environment("RH_TEST")), nullptr);
  EXPECT_EQ(KEEPING_LAST_ERROR(environment("")), nullptr);
}

// So that a value past the option's own limit can be reported.
TEST(Environment, TooLongIsGivenTooLong) {
  constexpr size_t limit = 480;  // of a path (entry/options.cpp)
  std::wstring longest(511, L'v');
  SetEnvironmentVariableW(L"RH_TEST", longest.c_str());
  ASSERT_NE(environment("RH_TEST"), nullptr);
  EXPECT_EQ(std::strlen(environment("RH_TEST")), longest.size());
  for (const size_t length : {512, 513, 30000}) {
    SetEnvironmentVariableW(L"RH_TEST", std::wstring(length, L'v').c_str());
    ASSERT_NE(KEEPING_LAST_ERROR(environment("RH_TEST")), nullptr);
    EXPECT_GT(std::strlen(environment("RH_TEST")), limit);
  }
  // Three-byte characters.
  SetEnvironmentVariableW(L"RH_TEST", std::wstring(300, L'\u20ac').c_str());
  ASSERT_NE(KEEPING_LAST_ERROR(environment("RH_TEST")), nullptr);
  EXPECT_EQ(std::strlen(environment("RH_TEST")), 900u);
  std::string name(600, 'N');
  EXPECT_EQ(KEEPING_LAST_ERROR(environment(name.c_str())), nullptr);
}

// ---- files --------------------------------------------------------------------------------------

// In the temporary folder; deleted with this object.
class TemporaryFile {
 public:
  TemporaryFile() {
    wchar_t folder[MAX_PATH], file[MAX_PATH];
    GetTempPathW(MAX_PATH, folder);
    EXPECT_NE(GetTempFileNameW(folder, L"r\u00fc", 0, file), 0u);
    path_ = file;
  }
  ~TemporaryFile() { DeleteFileW(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  std::string path() const {
    char text[4 * MAX_PATH];
    WideCharToMultiByte(CP_UTF8, 0, path_.c_str(), -1, text, sizeof text, nullptr, nullptr);
    return text;
  }

  std::string content() const {
    HANDLE file = CreateFileW(path_.c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, nullptr, OPEN_EXISTING,
                              FILE_ATTRIBUTE_NORMAL, nullptr);
    std::string read(1 << 20, 0);
    DWORD length = 0;
    EXPECT_TRUE(ReadFile(file, read.data(), static_cast<DWORD>(read.size()), &length, nullptr));
    CloseHandle(file);
    read.resize(length);
    return read;
  }

 private:
  std::wstring path_;
};

void write_file(const std::string& path, const std::string& text) {
  KEEPING_LAST_ERROR([&] {
    FileWriter file(path.c_str());
    EXPECT_TRUE(file.is_open());
    file.write(text.data(), text.size());
  }());
}

TEST(File, HoldsWhatWasWrittenLast) {
  TemporaryFile file;
  std::string much(300'000, 'x');  // in several parts
  write_file(file.path(), much);
  EXPECT_EQ(file.content(), much);
  write_file(file.path(), "line\n");
  EXPECT_EQ(file.content(), "line\n");
  write_file(file.path(), "");
  EXPECT_EQ(file.content(), "");
}

TEST(File, ThatCannotBeIsNotOpen) {
  TemporaryFile file;
  for (const std::string& path :
       {file.path() + "\\inside", std::string("Q:\\no\\such\\folder"), std::string(), std::string(600, 'x')}) {
    EXPECT_FALSE(KEEPING_LAST_ERROR(FileWriter(path.c_str()).is_open())) << path;
  }
}

// ---- messages to the user -----------------------------------------------------------------------

// Redirects stderr of the calling process for a while.
class StandardError {
 public:
  explicit StandardError(HANDLE handle) : before_(GetStdHandle(STD_ERROR_HANDLE)) {
    SetStdHandle(STD_ERROR_HANDLE, handle);
  }
  ~StandardError() { SetStdHandle(STD_ERROR_HANDLE, before_); }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;

 private:
  HANDLE before_;
};

struct Pipe {
  Pipe() { EXPECT_TRUE(CreatePipe(&from, &to, nullptr, 1 << 16)); }
  std::string read() const {
    char text[1000];
    DWORD length = 0;
    EXPECT_TRUE(ReadFile(from, text, sizeof text, &length, nullptr));
    return std::string(text, length);
  }
  HANDLE from = nullptr, to = nullptr;
};

void say(const char* text) {
  Text message;
  report(message << text);
}

TEST(StandardErrorTest, GetsWholeLines) {
  Pipe pipe;
  StandardError there(pipe.to);
  KEEPING_LAST_ERROR(say("this and that"));
  EXPECT_EQ(pipe.read(), "reheap: this and that\n");
}

TEST(StandardErrorTest, MayBeAbsent) {
  Pipe closed;
  CloseHandle(closed.from);
  HANDLE gone = closed.to;
  for (HANDLE handle : {HANDLE{nullptr}, INVALID_HANDLE_VALUE, gone}) {
    StandardError there(handle);
    KEEPING_LAST_ERROR(say("nobody hears this"));
  }
  CloseHandle(gone);
  StandardError there(gone);
  KEEPING_LAST_ERROR(say("nor this"));
}

// ---- ends ---------------------------------------------------------------------------------------

[[noreturn]] void end_with(int code) {
  at_farewell([] { TerminateProcess(GetCurrentProcess(), 99); });
  end_process(code);
}

TEST(ProcessDeathTest, EndsAtOnceWithItsCode) {
  EXPECT_EXIT(end_with(0), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(end_with(42), testing::ExitedWithCode(42), "");
}

TEST(ProcessDeathTest, EndsBesideOtherThreads) {
  auto end = [] {
    for (int at = 0; at < 4; ++at) {
      std::thread([] {
        for (;;) Sleep(0);
      }).detach();
    }
    end_process(42);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(42), "");
}

LONG WINAPI end_well(EXCEPTION_POINTERS*) { ExitProcess(0); }

TEST(ProcessDeathTest, FatalSaysWhyAndRunsNoHandler) {
  auto die = [] {
    atexit([] { _exit(0); });
    SetUnhandledExceptionFilter(end_well);
    Text message;
    fatal(message << "the reason");
  };
  EXPECT_DEATH(die(), "reheap: the reason");
}

TEST(ProcessDeathTest, FatalEndsItWithoutStandardErrorToo) {
  auto die = [] {
    SetStdHandle(STD_ERROR_HANDLE, nullptr);
    Text message;
    fatal(message << "the reason");
  };
  EXPECT_DEATH(die(), "");
}

}  // namespace
}  // namespace rh
