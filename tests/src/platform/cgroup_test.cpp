// What control groups say, from files as systems have them.
#include <gtest/gtest.h>

#include <string>

#include "platform/fake/fake.h"

namespace rh {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kNone = platform::Grant::kUnlimited;

std::string number(uint64_t value) { return std::to_string(value); }

// A group of version 2, of which `reclaimable` is cache.
void make_group(const std::string& path, const std::string& max, const std::string& high, uint64_t current,
                uint64_t reclaimable = 0) {
  fake::set_file((path + "/memory.max").c_str(), (max + "\n").c_str());
  fake::set_file((path + "/memory.high").c_str(), (high + "\n").c_str());
  fake::set_file((path + "/memory.current").c_str(), (number(current) + "\n").c_str());
  std::string stat = "anon 1\nfile 2\nactive_file " + number(reclaimable / 2) + "\ninactive_file " +
                     number(reclaimable / 4) + "\nslab_reclaimable " + number(reclaimable / 4) + "\n";
  fake::set_file((path + "/memory.stat").c_str(), stat.c_str());
}

constexpr const char* kMountOfNew =
    "22 28 0:20 / /sys rw,nosuid - sysfs sysfs rw\n"
    "30 22 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
    "41 28 0:44 / /tmp rw - tmpfs tmpfs rw\n";

void use_new(const char* group, const char* mounts = kMountOfNew) {
  fake::set_file("/proc/self/cgroup", ("0::" + std::string(group) + "\n").c_str());
  fake::set_file("/proc/self/mountinfo", mounts);
}

// So many pages of the process are its own.
void set_anonymous(uint64_t bytes) {
  std::string statm = "90000 " + number(bytes / 4096 + 100) + " 100 1 0 500 0\n";
  fake::set_file("/proc/self/statm", statm.c_str());
}

TEST(Cgroup, NothingIsKnownWithoutFiles) {
  platform::Grant grant = platform::read_grant(0);
  EXPECT_FALSE(grant.known);
  EXPECT_EQ(grant.hard, kNone);
  EXPECT_EQ(grant.soft, kNone);
}

TEST(Cgroup, OneOfVersionTwo) {
  use_new("/app");
  make_group("/sys/fs/cgroup/app", number(256 * kMiB), number(200 * kMiB), 90 * kMiB, 40 * kMiB);
  set_anonymous(100 * kMiB);
  platform::Grant grant = platform::read_grant(30 * kMiB);
  EXPECT_TRUE(grant.known);
  // 50 MiB stay when memory is short, of which 20 are not the heap's.
  EXPECT_EQ(grant.hard, 236 * kMiB);
  EXPECT_EQ(grant.soft, 180 * kMiB);
  EXPECT_EQ(grant.least, 200 * kMiB);
}

TEST(Cgroup, WhatTheHeapHasNeverTouchedIsNotInTheGroup) {
  use_new("/app");
  make_group("/sys/fs/cgroup/app", number(256 * kMiB), "max", 60 * kMiB);
  set_anonymous(40 * kMiB);
  EXPECT_EQ(platform::read_grant(200 * kMiB).hard, 236 * kMiB) << "20 MiB are others'";
}

TEST(Cgroup, WithoutALimitThereIsNone) {
  use_new("/app");
  make_group("/sys/fs/cgroup/app", "max", "max", 90 * kMiB);
  platform::Grant grant = platform::read_grant(0);
  EXPECT_TRUE(grant.known);
  EXPECT_EQ(grant.hard, kNone);
  EXPECT_EQ(grant.soft, kNone);
  EXPECT_EQ(grant.least, kNone);
}

// The strictest is not always the nearest, nor the one with the lowest limit.
TEST(Cgroup, ThoseAboveCountToo) {
  use_new("/pod/app/worker");
  make_group("/sys/fs/cgroup/pod/app/worker", "max", "max", 10 * kMiB);
  make_group("/sys/fs/cgroup/pod/app", number(128 * kMiB), "max", 10 * kMiB);
  make_group("/sys/fs/cgroup/pod", number(256 * kMiB), "max", 240 * kMiB);
  platform::Grant grant = platform::read_grant(10 * kMiB);
  EXPECT_EQ(grant.hard, 26 * kMiB);
  EXPECT_EQ(grant.least, 128 * kMiB);
}

// In a container with a name space of its own the limit is that of the root it sees.
TEST(Cgroup, TheUppermostThatIsSeenCounts) {
  use_new("/");
  make_group("/sys/fs/cgroup", number(64 * kMiB), "max", 0);
  EXPECT_EQ(platform::read_grant(0).hard, 64 * kMiB);
  use_new("/../elsewhere");
  EXPECT_EQ(platform::read_grant(0).hard, 64 * kMiB);
}

// Without a name space only a part of the hierarchy is mounted.
TEST(Cgroup, APartOfTheHierarchyIsMounted) {
  use_new("/docker/1234/sub", "30 22 0:26 /docker/1234 /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  make_group("/sys/fs/cgroup/sub", number(64 * kMiB), "max", 0);
  EXPECT_EQ(platform::read_grant(0).hard, 64 * kMiB);
  make_group("/sys/fs/cgroup", number(32 * kMiB), "max", 0);
  EXPECT_EQ(platform::read_grant(0).hard, 32 * kMiB);
  // A neighbour whose name only begins like it.
  fake::set_file("/proc/self/cgroup", "0::/docker/12345\n");
  EXPECT_EQ(platform::read_grant(0).hard, 32 * kMiB);
}

// As after a name space of groups of its own was made, and what was mounted before it is still there.
TEST(Cgroup, AnEarlierMountThatShowsOthersIsPassedOver) {
  constexpr const char* kOthers = "29 22 0:26 /.. /host/cgroup ro - cgroup2 cgroup rw\n";
  make_group("/host/cgroup", number(16 * kMiB), "max", 0);
  make_group("/sys/fs/cgroup", number(64 * kMiB), "max", 0);
  use_new("/", (kOthers + std::string(kMountOfNew)).c_str());
  EXPECT_EQ(platform::read_grant(0).hard, 64 * kMiB);
  use_new("/", kOthers);
  EXPECT_EQ(platform::read_grant(0).hard, 16 * kMiB);
  make_group("/sys/fs/cgroup/app", number(32 * kMiB), "max", 0);
  use_new("/app", (std::string(kMountOfNew) + kOthers).c_str());
  EXPECT_EQ(platform::read_grant(0).hard, 32 * kMiB);
}

TEST(Cgroup, AMountHasAnyName) {
  use_new("/a b", "30 22 0:26 / /my\\040groups rw - cgroup2 cgroup rw\n");
  make_group("/my groups/a b", number(64 * kMiB), "max", 0);
  EXPECT_EQ(platform::read_grant(0).hard, 64 * kMiB);
}

void use_old() {
  fake::set_file("/proc/self/cgroup", "9:name=systemd:/x\n5:cpu,memory:/pod/app\n4:cpuset:/\n0::/wrong\n");
  fake::set_file("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
                                         "32 31 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                                         "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,cpu,memory\n"
                                         "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
}

void make_old_group(const std::string& path, uint64_t limit, uint64_t usage, uint64_t cache) {
  fake::set_file((path + "/memory.limit_in_bytes").c_str(), (number(limit) + "\n").c_str());
  fake::set_file((path + "/memory.usage_in_bytes").c_str(), (number(usage) + "\n").c_str());
  std::string stat = "active_file 999999999\ntotal_inactive_file " + number(cache / 2) + "\ntotal_active_file " +
                     number(cache / 2) + "\n";
  fake::set_file((path + "/memory.stat").c_str(), stat.c_str());
}

TEST(Cgroup, OneOfVersionOne) {
  use_old();
  make_old_group("/sys/fs/cgroup/memory/pod/app", 9223372036854771712u, 90 * kMiB, 40 * kMiB);
  make_old_group("/sys/fs/cgroup/memory/pod", 256 * kMiB, 90 * kMiB, 40 * kMiB);
  make_old_group("/sys/fs/cgroup/memory", 9223372036854771712u, 900 * kMiB, 0);
  platform::Grant grant = platform::read_grant(30 * kMiB);
  EXPECT_TRUE(grant.known);
  EXPECT_EQ(grant.hard, 236 * kMiB);
  EXPECT_EQ(grant.soft, kNone);
  EXPECT_EQ(grant.least, 256 * kMiB);
}

// Nothing that a file could say is taken for a limit of nothing.
TEST(Cgroup, NonsenseIsNoLimit) {
  for (const char* text : {"", "\n", "what\n", "-1\n", "99999999999999999999999\n"}) {
    use_new("/app");
    make_group("/sys/fs/cgroup/app", text, text, 0);
    EXPECT_EQ(platform::read_grant(0).hard, kNone) << text;
    make_group("/sys/fs/cgroup/app", number(64 * kMiB), "max", 0);
    fake::set_file("/sys/fs/cgroup/app/memory.current", text);
    fake::set_file("/sys/fs/cgroup/app/memory.stat", text);
    EXPECT_EQ(platform::read_grant(0).hard, 64 * kMiB) << text;
  }
  for (const char* text : {"", "\n", "::\n", "0:\n", "0::\n", "x", "0::/app", ":::::\n\n\n"}) {
    fake::set_file("/proc/self/cgroup", text);
    fake::set_file("/proc/self/mountinfo", text);
    platform::read_grant(0);
    fake::set_file("/proc/self/mountinfo", kMountOfNew);
    platform::read_grant(0);
  }
}

TEST(Cgroup, LongLinesAndPathsAreSurvived) {
  std::string long_name(2000, 'x');
  use_new(("/" + long_name).c_str(), ("1 2 3:4 / /" + long_name + " rw - overlay o rw\n" + kMountOfNew).c_str());
  make_group("/sys/fs/cgroup", number(64 * kMiB), "max", 0);
  platform::read_grant(0);
  use_new("/app", ("1 2 3:4 / /" + long_name + " rw - overlay o rw\n" + kMountOfNew).c_str());
  make_group("/sys/fs/cgroup/app", number(32 * kMiB), "max", 0);
  EXPECT_EQ(platform::read_grant(0).hard, 32 * kMiB);
}

// ---- pressure -----------------------------------------------------------------------------------

bool is_short() { return platform::is_under_pressure(); }

void set_events(const char* group, unsigned high, unsigned max) {
  std::string text = "low 0\nhigh " + number(high) + "\nmax " + number(max) + "\noom 0\noom_kill 0\n";
  fake::set_file((std::string(group) + "/memory.events").c_str(), text.c_str());
}

TEST(Cgroup, EventsOfAnyGroupAboveArePressure) {
  EXPECT_FALSE(is_short());
  use_new("/pod/app");
  set_events("/sys/fs/cgroup/pod/app", 3, 1);
  set_events("/sys/fs/cgroup/pod", 100, 0);
  is_short();
  EXPECT_FALSE(is_short()) << "nothing new";
  set_events("/sys/fs/cgroup/pod/app", 4, 1);
  EXPECT_TRUE(is_short());
  EXPECT_FALSE(is_short());
  set_events("/sys/fs/cgroup/pod", 100, 1);
  EXPECT_TRUE(is_short());
  set_events("/sys/fs/cgroup/pod", 0, 0);  // another group
  EXPECT_FALSE(is_short());
  EXPECT_FALSE(is_short());
}

TEST(Cgroup, WaitingForMemoryIsPressure) {
  use_new("/app");
  auto stall = [](unsigned microseconds) {
    std::string text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=" + number(microseconds) +
                       "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=999999\n";
    fake::set_file("/sys/fs/cgroup/app/memory.pressure", text.c_str());
    return is_short();
  };
  stall(20000);
  EXPECT_FALSE(stall(20000));
  EXPECT_FALSE(stall(25000)) << "a little is usual";
  EXPECT_TRUE(stall(35000));
  fake::set_file("/sys/fs/cgroup/app/memory.pressure", "some nonsense total=x\n");
  EXPECT_FALSE(is_short());
}

TEST(Cgroup, WhereThereAreNoGroupsTheMachineTells) {
  fake::set_file("/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=100000\n");
  is_short();
  EXPECT_FALSE(is_short());
  fake::set_file("/proc/pressure/memory", "some avg10=9.00 avg60=0.00 avg300=0.00 total=200000\n");
  EXPECT_TRUE(is_short());
}

TEST(Cgroup, AFailedChargeOfAnOldOneIsPressure) {
  use_old();
  fake::set_file("/sys/fs/cgroup/memory/pod/app/memory.failcnt", "7\n");
  is_short();
  EXPECT_FALSE(is_short());
  fake::set_file("/sys/fs/cgroup/memory/pod/app/memory.failcnt", "8\n");
  EXPECT_TRUE(is_short());
  EXPECT_FALSE(is_short());
}

// A process may have only so many files open: whichever could not be opened, no answer is not "no limit".
TEST(Cgroup, AFileThatCannotBeOpenedMakesTheAnswerUnknown) {
  use_new("/app");
  make_group("/sys/fs/cgroup/app", number(64 * kMiB), "max", kMiB);
  size_t before = fake::calls(fake::Call::open);
  ASSERT_TRUE(platform::read_grant(0).known);
  size_t opened = fake::calls(fake::Call::open) - before;
  for (size_t nth = 1; nth <= opened; ++nth) {
    fake::fail_nth(fake::Call::open, nth);
    EXPECT_FALSE(platform::read_grant(0).known) << nth;
  }
  EXPECT_TRUE(platform::read_grant(0).known);
}

}  // namespace
}  // namespace rh
