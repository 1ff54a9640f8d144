// Limits of memory where there are forks and control groups.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "reheap/reheap.h"
#include "support/library.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

constexpr std::size_t kMost = 64 * MiB;

std::size_t take_all(std::size_t size) {
  std::size_t bytes = 0;
  while (void* block = malloc(size)) {
    std::memset(block, 1, size);
    bytes += size;
    NEED(bytes < 1024 * MiB, "no limit");
  }
  return bytes;
}

// Beside threads that are at the limit all the time.
SCENARIO(fork_at_the_limit) {
  NEED(CONTRACT_FIND(rh_limit_set)(kMost / 2, kMost));
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (unsigned at = 0; at < 4; ++at)
    threads.emplace_back([&over, at] {
      Random random(at);
      std::vector<void*> own(400);
      while (!over)
        for (void*& block : own) {
          free(block);
          block = malloc(random.size(400000));
        }
      for (void* block : own) free(block);
    });
  for (int round = 0; round < 6; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      rh_limit limit = {};
      limit.struct_size = sizeof(limit);
      bool right = CONTRACT_FIND(rh_limit_get)(&limit) && limit.hard == kMost && take_all(50000) <= kMost;
      right = right && CONTRACT_FIND(rh_limit_set)(0, 0) && malloc(opaque(2 * kMost)) != nullptr;
      _exit(right ? 0 : 1);
    }
    NEED(child > 0);
    NEED(await(child, 20) == 0);
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  return 0;
}

TEST(MemoryPosix, AForkedChildKeepsTheLimit) { EXPECT_SCENARIO("fork_at_the_limit"); }

// Where the system moves pages, what is moved is there once.
SCENARIO(large_block_moves_at_the_limit) {
  NEED(CONTRACT_FIND(rh_limit_set)(0, kMost));
  constexpr std::size_t kSize = kMost / 8 * 5, kLonger = kMost / 8 * 7;
  void* block = malloc(kSize);
  void* behind = malloc(MiB);
  fill(block, kSize, 7);
  void* moved = realloc(block, kLonger);
  NEED(intact(moved != nullptr ? moved : block, kSize, 7));
  rh_limit limit = {};
  limit.struct_size = sizeof(limit);
  NEED(CONTRACT_FIND(rh_limit_get)(&limit) && limit.held <= kMost, "%zu held", limit.held);
  free(behind);
  return 0;
}

TEST(MemoryPosix, ALargeBlockMovesAtTheLimit) { EXPECT_SCENARIO("large_block_moves_at_the_limit"); }

// ---- control groups ----------------------------------------------------------------------------

std::string read_all(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool write_all(const std::string& path, const std::string& text) {
  const int file = open(path.c_str(), O_WRONLY);
  if (file < 0) return false;
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  return close(file) == 0 && written;
}

// A group below that of this process, of either version; gone with this object. Few systems let a process make one.
class Group {
 public:
  explicit Group(std::size_t limit) {
    std::istringstream lines(read_all("/proc/self/cgroup"));
    for (std::string line; std::getline(lines, line);) {
      if (size_t at = line.find(":memory:"); at != std::string::npos)
        make("/sys/fs/cgroup/memory" + line.substr(at + 8), "/memory.limit_in_bytes", limit);
      if (line.starts_with("0::") && path_.empty()) make("/sys/fs/cgroup" + line.substr(3), "/memory.max", limit);
    }
  }
  ~Group() {
    for (int attempt = 0; !path_.empty() && rmdir(path_.c_str()) != 0 && attempt < 100; ++attempt) usleep(20000);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  bool is_there() const { return !path_.empty(); }
  bool enter() const { return write_all(path_ + "/cgroup.procs", std::to_string(getpid())); }
  bool change(std::size_t limit) const { return write_all(path_ + limit_, std::to_string(limit)); }

 private:
  void make(const std::string& above, const char* limit, std::size_t bytes) {
    const std::string path = above + "/reheap-test-" + std::to_string(getpid());
    if (mkdir(path.c_str(), 0755) != 0) return;
    limit_ = limit;
    path_ = path;
    if (change(bytes)) return;
    rmdir(path.c_str());
    path_.clear();
  }

  std::string path_, limit_;
};

constexpr std::size_t kGroup = 256 * MiB;
constexpr int kNoGroup = 77, kUnlimited = 78;

// Runs in a group that would kill it.
int run_in_group(int (*body)()) {
  Group group(kGroup);
  if (!group.is_there()) return kNoGroup;
  const pid_t child = fork();
  if (child == 0) _exit(group.enter() ? body() : kNoGroup);
  int status = 0;
  NEED(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Far more than the group allows, if nobody says no.
int grow_far() {
  for (std::size_t bytes = 0; bytes < 2 * kGroup; bytes += 100000) {
    void* block = malloc(100000);
    if (block == nullptr) return bytes > kGroup / 2 ? 0 : 1;
    std::memset(block, 1, 100000);
  }
  return kUnlimited;
}

SCENARIO(grow_in_a_group) { return run_in_group(grow_far); }

SCENARIO(grow_in_a_group_automatically) {
  return run_in_group([] { return CONTRACT_FIND(rh_option_set)("limit", "auto") ? grow_far() : 2; });
}

TEST(MemoryPosix, AProgramThatItsGroupWouldKillLivesOn) {
  const Outcome killed = run("grow_in_a_group");
  if (killed.code == kNoGroup) GTEST_SKIP() << "no control group can be made here";
  if (killed.code == kUnlimited) GTEST_SKIP() << "the group's limit kills nobody here";
  EXPECT_EQ(killed.code, 128 + SIGKILL) << "the control: " << killed.describe();
  EXPECT_SCENARIO("grow_in_a_group_automatically");
}

}  // namespace
