// Lines that are written while another one is.
#include "platform/report.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csetjmp>
#include <string>
#include <thread>

#include "platform/fake/fake.h"

namespace rh {
namespace {

void say_word(Text& text, const void* word) { text << static_cast<const char*>(word); }

std::string errors() { return fake::errors(); }

// Another thread begins a line that it does not end. Gives its token.
platform::ThreadToken leave_a_line() {
  static std::jmp_buf out;
  const uint32_t own = fake::become(fake::make_thread());
  const platform::ThreadToken token = platform::thread_token();
  if (setjmp(out) == 0) report_line([](Text&, const void*) { std::longjmp(out, 1); }, nullptr);
  fake::become(own);
  return token;
}

// As all is said that is known.
void expect_all_said() {
  Event made;
  made.thread = 7;
  Misuse misuse;
  misuse.made = &made;
  tell_misuse(say_word, "quick", misuse);
  EXPECT_EQ(errors(), "reheap: quick; made by thread 7\n");
}

TEST(Report, ALineOfAnyLengthIsCutAndEnds) {
  auto say = [](Text& text, const void*) {
    for (int i = 0; i != 10000; ++i) text << 'a';
  };
  report_line(say, nullptr);
  EXPECT_EQ(errors().rfind("reheap: aaa", 0), 0u);
  EXPECT_EQ(errors().size(), 8u * 1024);
  EXPECT_EQ(errors().find('\n'), errors().size() - 1);
  tell_misuse(say_word, "once more");
  EXPECT_NE(errors().find("\nreheap: once more\n"), std::string::npos);
}

// As a handler of a signal that comes meanwhile.
TEST(Report, AThreadThatIsInterruptedDoesNotWaitForItself) {
  auto say = [](Text& text, const void*) {
    text << "outer";
    tell_misuse(say_word, "inner");
    text << " goes on";
  };
  tell_misuse(say, nullptr);
  EXPECT_EQ(errors(), "reheap: inner\nreheap: outer goes on\n");
}

TEST(Report, NobodyWaitsForEver) {
  static std::atomic<bool> begun{false}, done{false};
  std::thread slow([] {
    auto say = [](Text& text, const void*) {
      begun.store(true);
      while (!done.load()) std::this_thread::yield();
      text << "slow";
    };
    report_line(say, nullptr);
  });
  while (!begun.load()) std::this_thread::yield();
  tell_misuse(say_word, "quick");
  EXPECT_EQ(errors(), "reheap: quick\n");
  done.store(true);
  slow.join();
  EXPECT_EQ(errors(), "reheap: quick\nreheap: slow\n");
}

TEST(Report, AThreadThatIsTerminatedInTheMiddleOfALineTakesNothingFromOthers) {
  fake::set_terminated(leave_a_line());
  expect_all_said();
}

TEST(Report, AChildHasNoLineOfItsParentsOtherThreads) {
  leave_a_line();
  leave_reports_of_others(platform::thread_token());
  expect_all_said();
}

}  // namespace
}  // namespace rh
