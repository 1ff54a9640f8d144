// Lines that are written while another one is.
#include "platform/report.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "platform/fake/fake.h"

namespace rh {
namespace {

void say_word(Text& text, const void* word) { text << static_cast<const char*>(word); }

std::string errors() { return fake::errors(); }

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

}  // namespace
}  // namespace rh
