// The main of a GoogleTest program each of whose tests needs a process of its own: it forks one for each. Where
// programs start slowly, as under an emulator, this takes a tenth of the time that one start for each would.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr unsigned kSeconds = 100;  // that one test may take; then it ends by SIGALRM

enum class End : unsigned char { passed, skipped, failed };

[[noreturn]] void run_one(const std::string& name) {
  alarm(kSeconds);
  testing::GTEST_FLAG(filter) = name;
  int status = RUN_ALL_TESTS();
  fflush(nullptr);
  bool skipped = testing::UnitTest::GetInstance()->skipped_test_count() != 0;
  _exit(static_cast<int>(status != 0 ? End::failed : skipped ? End::skipped : End::passed));
}

End run_apart(const std::string& name) {
  fflush(nullptr);
  pid_t child = fork();
  if (child == 0) run_one(name);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return End::failed;
  if (WIFSIGNALED(status)) printf("ended by signal %d\n", WTERMSIG(status));
  return WIFEXITED(status) ? static_cast<End>(WEXITSTATUS(status)) : End::failed;
}

// Those whose names begin with one of the words; all, where there are none.
std::vector<std::string> chosen_tests(int count, char** words) {
  auto is_chosen = [=](const std::string& name) {
    for (int word = 0; word < count; ++word)
      if (name.starts_with(words[word])) return true;
    return count == 0;
  };
  std::vector<std::string> names;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int suite = 0; suite < all.total_test_suite_count(); ++suite) {
    const testing::TestSuite& tests = *all.GetTestSuite(suite);
    for (int test = 0; test < tests.total_test_count(); ++test) {
      const testing::TestInfo& info = *tests.GetTestInfo(test);
      std::string name = std::string(tests.name()) + "." + info.name();
      if (is_chosen(name)) names.push_back(name);
    }
  }
  return names;
}

}  // namespace

int main(int count, char** arguments) {
  testing::GTEST_FLAG(brief) = true;
  testing::InitGoogleTest(&count, arguments);
  std::vector<std::string> failed;
  size_t ends[3] = {};
  const std::vector<std::string> names = chosen_tests(count - 1, arguments + 1);
  for (const std::string& name : names) {
    End end = run_apart(name);
    ++ends[static_cast<size_t>(end)];
    if (end == End::failed) failed.push_back(name);
  }
  printf("apart: %zu passed, %zu skipped, %zu failed\n", ends[0], ends[1], ends[2]);
  for (const std::string& name : failed) printf("apart: failed: %s\n", name.c_str());
  return failed.empty() && ends[0] != 0 ? 0 : 1;
}
