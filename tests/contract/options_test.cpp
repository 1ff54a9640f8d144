// Options by environment and by API, and the reports: statistics at exit, who serves malloc here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#if !defined(_WIN32)
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "reheap/reheap.h"
#include "support/library.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;
using nlohmann::json;

namespace {

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

void work() {
  Random random(3);
  std::vector<std::string> texts(500);
  for (int round = 0; round < 20000; ++round) texts[random.below(500)] = std::string(random.size(10000), 'o');
  void* large = calloc(1, 5 * MiB);
  NEED(large && all_zero(large, 5 * MiB));
  free(large);
  std::vector<void*> blocks;
  for (int at = 0; at < 3000; ++at) blocks.push_back(malloc(100));
  std::thread([&] {
    for (void* block : blocks) free(block);
  }).join();
}

SCENARIO(option_work) {
  work();
  std::puts("worked");
  return 0;
}

struct Setting {
  const char* name;
  const char* value;
};

TEST(Options, GoodValuesAreTakenInSilence) {
  const Setting good[] = {
      {"REHEAP_DECAY_MS", "0"},      {"REHEAP_DECAY_MS", "1"},       {"REHEAP_DECAY_MS", "1000"},
      {"REHEAP_DECAY_MS", "600000"}, {"REHEAP_WINDOW", "268435456"}, {"REHEAP_WINDOW", "262144K"},
      {"REHEAP_WINDOW", "512M"},     {"REHEAP_WINDOW", "1G"},        {"REHEAP_WINDOW_AT", "low"},
      {"REHEAP_WINDOW_AT", "image"}, {"REHEAP_DOCTOR", "off"},       {"REHEAP_DOCTOR", "0"},
  };
  for (const auto& [name, value] : good) {
    if (narrow && std::strncmp(name, "REHEAP_WINDOW", 13) == 0) continue;  // 64-bit processes only
    const Outcome outcome = run("option_work", {.environment = {{name, value}}});
    EXPECT_TRUE(outcome.succeeded()) << name << '=' << value << ": " << outcome.describe();
    EXPECT_EQ(outcome.err, "") << name << '=' << value;
    EXPECT_EQ(outcome.out, "worked\n");
  }
}

TEST(Options, BadValuesNameThemselvesAndTheAllowedAndAreIgnored) {
  const Setting bad[] = {
      {"REHEAP_DECAY_MS", "abc"},
      {"REHEAP_DECAY_MS", "-1"},
      {"REHEAP_DECAY_MS", "600001"},
      {"REHEAP_DECAY_MS", "10x"},
      {"REHEAP_DECAY_MS", "99999999999999999999"},
      {"REHEAP_WINDOW", "much"},
      {"REHEAP_WINDOW", "5Q"},
      {"REHEAP_WINDOW", "-1G"},
      {"REHEAP_WINDOW", "99999999999T"},
      {"REHEAP_WINDOW_AT", "nowhere"},
      {"REHEAP_WINDOW_AT", "0xzz"},
      {"REHEAP_VERBOSE", "maybe"},
  };
  for (const auto& [name, value] : bad) {
    const Outcome outcome = run("option_work", {.environment = {{name, value}}});
    EXPECT_TRUE(outcome.succeeded()) << name << '=' << value << ": " << outcome.describe();
    EXPECT_EQ(outcome.out, "worked\n");
    const std::string opening = std::string("reheap: ") + name + "=" + value + " is not ";
    EXPECT_EQ(outcome.err.substr(0, opening.size()), opening);
    EXPECT_NE(outcome.err.find("; allowed: "), std::string::npos) << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1u) << outcome.err;
  }
}

TEST(Options, AnUnknownNameIsSaid) {
  const Outcome outcome = run("option_work", {.environment = {{"REHEAP_DECAY", "1"}}});
  EXPECT_TRUE(outcome.succeeded()) << outcome.describe();
  EXPECT_EQ(outcome.out, "worked\n");
  EXPECT_EQ(outcome.err.substr(0, 33), "reheap: REHEAP_DECAY is no option") << outcome.err;
  EXPECT_NE(outcome.err.find("REHEAP_DECAY_MS"), std::string::npos) << outcome.err;
  EXPECT_EQ(lines(outcome.err), 1u) << outcome.err;
}

TEST(Options, NamesOfTheToolsAreLeftAlone) {
  const Outcome outcome =
      run("option_work",
          {.environment = {{"REHEAP_LIBRARY", "/some/where"}, {"REHEAP_RECORD_LIMIT", "1"}, {"REHEAPING", "1"}}});
  EXPECT_EQ(outcome.err, "");
}

TEST(Options, VerbosePrintsOneLineAtTheStart) {
  const Outcome outcome = run("option_work", {.environment = {{"REHEAP_VERBOSE", "1"}}});
  EXPECT_TRUE(outcome.succeeded()) << outcome.describe();
  EXPECT_EQ(outcome.err.substr(0, 8), "reheap: ") << outcome.err;
  EXPECT_NE(outcome.err.find("0.1.0"), std::string::npos) << outcome.err;
  EXPECT_EQ(lines(outcome.err), 1u) << outcome.err;
}

// ---- the window --------------------------------------------------------------------------------

template <class Visit> void visit_blocks(Visit visit) {
  for (const std::size_t size : interesting_sizes(20 * MiB, 100)) {
    auto* block = static_cast<char*>(malloc(size));
    NEED(block, "%zu", size);
    visit(reinterpret_cast<std::uintptr_t>(block));
    visit(reinterpret_cast<std::uintptr_t>(block) + size);
    free(block);
  }
}

SCENARIO(window_low) {
  visit_blocks([](std::uint64_t at) { NEED(at < std::uint64_t{1} << 32, "0x%jx", static_cast<uintmax_t>(at)); });
  return 0;
}

SCENARIO(window_near_the_image) {
  static int anchor = 0;
  visit_blocks([](std::uintptr_t at) {
    const auto distance = static_cast<std::intptr_t>(at - reinterpret_cast<std::uintptr_t>(&anchor));
    NEED(std::abs(static_cast<long long>(distance)) < 2ll << 30, "%lld", static_cast<long long>(distance));
  });
  return 0;
}

constexpr std::uint64_t kPlace = 0x300000000000u;

SCENARIO(window_at_a_place) {
  visit_blocks(
      [](std::uint64_t at) { NEED(at >= kPlace && at < kPlace + 1024 * MiB, "0x%jx", static_cast<uintmax_t>(at)); });
  return 0;
}

TEST(Window, LiesWhereAsked) {
  if (narrow) GTEST_SKIP() << "everything is near and low in 32 bits";
  EXPECT_SCENARIO("window_low", {.environment = {{"REHEAP_WINDOW", "1G"}, {"REHEAP_WINDOW_AT", "low"}}});
  EXPECT_SCENARIO("window_near_the_image", {.environment = {{"REHEAP_WINDOW", "1G"}, {"REHEAP_WINDOW_AT", "image"}}});
  EXPECT_SCENARIO("window_at_a_place",
                  {.environment = {{"REHEAP_WINDOW", "1G"}, {"REHEAP_WINDOW_AT", "0x300000000000"}}});
}

SCENARIO(window_is_the_limit) {
  std::size_t held = 0;
  struct Link {
    Link* next;
  };
  Link* first = nullptr;
  for (;;) {
    errno = 0;
    auto* block = static_cast<Link*>(malloc(100 * KiB));
    if (!block) break;
    block->next = first;
    first = block;
    held += 100 * KiB;
    NEED(held <= 256 * MiB, "%zu MiB in a window of 256", held / MiB);
  }
  NEED(errno == ENOMEM);
  NEED(held > 128 * MiB, "only %zu MiB in a window of 256", held / MiB);
  while (first) {
    Link* next = first->next;
    free(first);
    first = next;
  }
  void* block = malloc(64 * MiB);
  NEED(block);
  free(block);
  return 0;
}

TEST(Window, IsTheMostThereIs) {
  if (narrow) GTEST_SKIP() << "64-bit processes only";
  EXPECT_SCENARIO("window_is_the_limit", {.environment = {{"REHEAP_WINDOW", "256M"}}});
}

// ---- decay -------------------------------------------------------------------------------------

// How much of 60 MB is still resident half a second after it was freed.
SCENARIO(held_after_half_a_second) {
  std::vector<void*> blocks;
  for (int at = 0; at < 60000; ++at) {
    blocks.push_back(malloc(1000));
    std::memset(blocks.back(), 1, 1000);
  }
  const std::size_t full = resident();
  for (void* block : blocks) free(block);
  nap(0.5);
  const std::size_t now = resident();
  std::printf("%zu", now < full ? (full - now) / MiB : 0);
  return 0;
}

TEST(Decay, IsAsLongAsAsked) {
  Running at_once = start("held_after_half_a_second", {.environment = {{"REHEAP_DECAY_MS", "0"}}});
  Running later = start("held_after_half_a_second", {.environment = {{"REHEAP_DECAY_MS", "60000"}}});
  EXPECT_GT(std::atoi(at_once.finish().out.c_str()), 45) << "MiB returned with a decay of 0";
  EXPECT_LT(std::atoi(later.finish().out.c_str()), 10) << "MiB returned with a decay of a minute";
}

// ---- by API ------------------------------------------------------------------------------------

SCENARIO(options_by_api) {
  auto* set = CONTRACT_FIND(rh_option_set);
  NEED(set);
  NEED(set("decay_ms", "0"));
  NEED(set("decay_ms", "2500"));
  std::fputs("--\n", stderr);
  std::fflush(stderr);
  NEED(!set("decay_ms", "never"));
  NEED(!set("colour", "blue"));
  NEED(!set(nullptr, "1"));
  NEED(!set("stats", nullptr));
  return 0;
}

TEST(Options, ByApi) {
  const Outcome outcome = run("options_by_api");
  EXPECT_TRUE(outcome.succeeded()) << outcome.describe();
  EXPECT_EQ(outcome.err.substr(0, 3), "--\n") << "good values are taken in silence";
  EXPECT_EQ(lines(outcome.err), 5u) << outcome.err;
  for (const char* said : {"never", "colour", "option is called (null)", "REHEAP_STATS=(null)"})
    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
}

// ---- reports -----------------------------------------------------------------------------------

std::string collect(void (*report)(rh_write_fn, void*)) {
  std::string text;
  text.reserve(1 << 20);  // the report allocates nothing, and neither must its reader
  report(
      [](const char* piece, std::size_t length, void* into) { static_cast<std::string*>(into)->append(piece, length); },
      &text);
  return text;
}

void check_stats(const json& stats) {
  for (const char* name : {"reserved", "committed", "committed_peak", "in_use", "spans_in_use", "spans_in_use_peak",
                           "free_dirty", "metadata", "returned", "heaps"}) {
    ASSERT_TRUE(stats.contains(name) && stats[name].is_number_unsigned()) << name;
  }
  EXPECT_EQ(stats["version"], "0.1.0");
  EXPECT_GE(stats["reserved"], stats["committed"]);
  EXPECT_GE(stats["committed_peak"], stats["committed"]);
  EXPECT_GE(stats["spans_in_use_peak"], stats["spans_in_use"]);
  EXPECT_GT(stats["committed_peak"], 1 * MiB);
  EXPECT_GT(stats["metadata"], 0u);
  std::size_t last = 0;
  for (const json& size_class : stats["classes"]) {
    EXPECT_GT(size_class["size"].get<std::size_t>(), last);
    last = size_class["size"];
    EXPECT_GT(size_class["slabs"], 0u);
    EXPECT_GE(size_class["blocks"], size_class["in_use"]) << size_class;
  }
  EXPECT_GT(last, 0u);
  EXPECT_GE(stats["large"]["bytes"].get<std::size_t>(), stats["large"]["blocks"].get<std::size_t>());
  for (const char* call : {"reserve", "release", "commit", "purge", "move", "thread", "wait", "wake"})
    ASSERT_TRUE(stats["os_calls"].contains(call)) << call;
  EXPECT_GT(stats["os_calls"]["reserve"], 0u);
  EXPECT_GE(stats["remote"]["frees"], stats["remote"]["batches"]);
  for (const char* path : {"refill", "slab"}) ASSERT_TRUE(stats["slow_paths"].contains(path)) << path;
  EXPECT_GT(stats["slow_paths"]["refill"], 0u);
}

TEST(Report, StatsByApi) {
  void* blocks[100];
  for (void*& block : blocks) block = malloc(48);
  const json before = json::parse(collect(CONTRACT_FIND(rh_stats_json)));
  check_stats(before);
  EXPECT_EQ(before["pid"], process_id());
  void* large = malloc(30 * MiB);
  const json during = json::parse(collect(CONTRACT_FIND(rh_stats_json)));
  free(large);
  EXPECT_GE(during["large"]["bytes"].get<std::size_t>(), before["large"]["bytes"].get<std::size_t>() + 30 * MiB);
  for (void* block : blocks) free(block);
}

TEST(Report, StatsAtExitToStderr) {
  const Outcome outcome = run("option_work", {.environment = {{"REHEAP_STATS", "1"}}});
  EXPECT_TRUE(outcome.succeeded()) << outcome.describe();
  const json stats = json::parse(outcome.err, nullptr, false);
  ASSERT_FALSE(stats.is_discarded()) << outcome.err;
  check_stats(stats);
  EXPECT_GT(stats["remote"]["frees"], 2000u);
}

TEST(Report, StatsAtExitToAFile) {
  const std::string path = testing::TempDir() + "reheap-stats-" + std::to_string(process_id());
  const Outcome outcome = run("option_work", {.environment = {{"REHEAP_STATS", path}}});
  EXPECT_TRUE(outcome.succeeded()) << outcome.describe();
  EXPECT_EQ(outcome.err, "");
  std::FILE* file = std::fopen(path.c_str(), "rb");
  ASSERT_NE(file, nullptr) << path;
  check_stats(json::parse(file));
  std::fclose(file);
  std::remove(path.c_str());
}

TEST(Report, StatsToAFileThatCannotBeWritten) {
  const std::string path = testing::TempDir() + "reheap-missing-" + std::to_string(process_id()) + "/stats";
  const Outcome outcome = run("option_work", {.environment = {{"REHEAP_STATS", path}}});
  EXPECT_TRUE(outcome.succeeded()) << outcome.describe();
  EXPECT_EQ(outcome.err.substr(0, 8), "reheap: ") << outcome.err;
  EXPECT_NE(outcome.err.find(path + ": cannot be written: there is no such folder"), std::string::npos) << outcome.err;
}

#if !defined(_WIN32)
TEST(Report, NobodyReadsThePipeItGoesTo) {
  const std::string path = testing::TempDir() + "reheap-pipe-" + std::to_string(process_id());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  for (const char* option : {"REHEAP_STATS", "REHEAP_PROFILE"}) {
    if (is_hardened() && std::strcmp(option, "REHEAP_PROFILE") == 0) continue;
    const Outcome outcome = run("option_work", {.environment = {{option, path}}});
    EXPECT_TRUE(outcome.succeeded()) << outcome.describe();
    EXPECT_NE(outcome.err.find(path + ": cannot be written: nobody reads the pipe"), std::string::npos) << outcome.err;
  }
  std::remove(path.c_str());
}

// The number of stderr, which the program has closed, becomes that of the next file it opens.
SCENARIO(report_beside_data) {
  close(STDERR_FILENO);
  const std::string path = testing::TempDir() + "reheap-data-" + std::to_string(process_id());
  const int file = open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  NEED(file == STDERR_FILENO && unlink(path.c_str()) == 0);
  NEED(!CONTRACT_FIND(rh_option_set)("no_such_option", "1"));
  struct stat facts = {};
  NEED(fstat(file, &facts) == 0);
  return facts.st_size == 0 ? 0 : 1;
}
TEST(Report, NothingIsWrittenIntoADataFile) { EXPECT_SCENARIO("report_beside_data"); }

// A write that fails sends a signal as well, which ends a program that does not ignore it.
SCENARIO(report_nobody_reads) {
  int ends[2];
  NEED(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO && close(ends[0]) == 0);
  NEED(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
  NEED(!CONTRACT_FIND(rh_option_set)("no_such_option", "1"));
  sigset_t blocked, pending;
  NEED(sigprocmask(SIG_BLOCK, nullptr, &blocked) == 0 && sigpending(&pending) == 0);
  return sigismember(&blocked, SIGPIPE) == 0 && sigismember(&pending, SIGPIPE) == 0 ? 0 : 1;
}
TEST(Report, NobodyReadsStderr) { EXPECT_SCENARIO("report_nobody_reads"); }

SCENARIO(report_file_may_be_short) {
  NEED(signal(SIGXFSZ, SIG_DFL) != SIG_ERR);
  const rlimit most = {500, 500};  // more than the message, which may go to a file too
  NEED(setrlimit(RLIMIT_FSIZE, &most) == 0);
  return 0;
}
TEST(Report, FilesMayNotBeThatLong) {
  const std::string path = testing::TempDir() + "reheap-short-" + std::to_string(process_id());
  const Outcome outcome = run("report_file_may_be_short", {.environment = {{"REHEAP_STATS", path}}});
  EXPECT_TRUE(outcome.succeeded()) << outcome.describe();
  EXPECT_NE(outcome.err.find(path + ": cannot be written: files may not be that long"), std::string::npos)
      << outcome.err;
  std::remove(path.c_str());
}

// More than a pipe holds, for one that reads slowly.
TEST(Report, AReaderOfAPipeHasAll) {
  const std::string path = testing::TempDir() + "reheap-pipe-" + std::to_string(process_id());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int pipe = open(path.c_str(), O_RDWR);  // so that it has a reader from the start
  ASSERT_EQ(fcntl(pipe, F_SETPIPE_SZ, 4096), 4096);
  std::string text;
  std::thread reader([&] {
    for (char last = 0; last != '\n'; text += last)
      if (read(pipe, &last, 1) != 1) return;
  });
  const Outcome outcome = run("option_work", {.environment = {{"REHEAP_STATS", path}}});
  EXPECT_TRUE(outcome.succeeded()) << outcome.describe();
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(write(pipe, "\n", 1), 1);  // its end, if nothing came
  reader.join();
  close(pipe);
  std::remove(path.c_str());
  const json stats = json::parse(text, nullptr, false);
  ASSERT_FALSE(stats.is_discarded()) << text;
  check_stats(stats);
}
#endif

SCENARIO(report_here) {
  const std::string text = collect(CONTRACT_FIND(rh_report_json));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

TEST(Report, SaysWhoServesMalloc) {
  const Outcome outcome = run("report_here", {.environment = {{"REHEAP_DECAY_MS", "1234"}}});
  const json report = json::parse(outcome.out, nullptr, false);
  ASSERT_FALSE(report.is_discarded()) << outcome.describe();
  EXPECT_EQ(report["overridden"], true);
  EXPECT_EQ(report["version"], "0.1.0");
  EXPECT_EQ(report["options"]["decay_ms"], 1234);
  EXPECT_NE(report["build"].get<std::string>().find(narrow ? "32-bit" : "64-bit"), std::string::npos);
  for (const char* name : {"malloc_served_by", "library"})
    EXPECT_EQ(real_path(report[name].get<std::string>()), expected_server()) << name;
  EXPECT_GT(report["realm"]["reserved"], 0u);
}

TEST(Report, SaysWhatBecameOfAnImpossibleWindow) {
  if (narrow) GTEST_SKIP() << "64-bit processes only";
  const Outcome outcome = run("report_here", {.environment = {{"REHEAP_WINDOW_AT", "low"}, {"REHEAP_WINDOW", "8G"}}});
  const json report = json::parse(outcome.out, nullptr, false);
  ASSERT_FALSE(report.is_discarded()) << outcome.describe();
  EXPECT_NE(outcome.err.find("no room there"), std::string::npos) << outcome.err;
  EXPECT_EQ(report["options"]["window_at"], "anywhere");
  EXPECT_EQ(report["options"]["window"], std::uint64_t{8} << 30);
}

// ---- misuse -------------------------------------------------------------------------------------

SCENARIO(options_free_twice) {
  void* volatile block = malloc(5 * MiB);
  free(block);
  free(block);
  return 0;
}

// On while the process has little to do with: there are only so many places.
SCENARIO(options_read_freed) {
  NEED(CONTRACT_FIND(rh_option_set)("sample_guard", "1"));
  char* volatile block = static_cast<char*>(malloc(100));
  free(block);
  return *static_cast<volatile char*>(block);
}

std::vector<json> objects_in(const std::string& path) {
  std::vector<json> objects;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  std::vector<char> line(64 * 1024);
  while (file != nullptr && std::fgets(line.data(), static_cast<int>(line.size()), file) != nullptr)
    objects.push_back(json::parse(line.data(), nullptr, false));
  if (file != nullptr) std::fclose(file);
  std::remove(path.c_str());
  return objects;
}

TEST(Report, MisuseIsAddedToAFile) {
  const std::string path = testing::TempDir() + "reheap-misuse-" + std::to_string(process_id());
  EXPECT_FALSE(run("options_free_twice", {.environment = {{"REHEAP_MISUSE_JSON", path}}}).succeeded());
  EXPECT_FALSE(run("options_free_twice", {.environment = {{"REHEAP_MISUSE_JSON", path}}}).succeeded());
  const std::vector<json> objects = objects_in(path);
  ASSERT_EQ(objects.size(), 2u);
  for (const json& object : objects) {
    ASSERT_TRUE(object.contains("message") && object.contains("seen")) << object;
    EXPECT_NE(object["message"].get<std::string>().find("free of "), std::string::npos) << object;
    EXPECT_GT(object["pid"], 0u);
    EXPECT_GT(object["seen"]["thread"], 0u);
  }
}

#if defined(__linux__)
TEST(Report, MisuseThatAFullDiskTakesNoneOfIsToldOfThat) {
  const Outcome outcome = run("options_free_twice", {.environment = {{"REHEAP_MISUSE_JSON", "/dev/full"}}});
  EXPECT_NE(outcome.err.find("REHEAP_MISUSE_JSON /dev/full: cannot be written: the disk is full"), std::string::npos)
      << outcome.err;
}
#endif

// What ends a program by a fault brings up a debugger under Wine: there the crimes show it.
#if !defined(_WIN32)
TEST(Report, MisuseOfASampledBlockSaysWhoMadeAndFreedIt) {
  if (is_hardened()) GTEST_SKIP() << "which has guards of another kind";
  const std::string path = testing::TempDir() + "reheap-sampled-" + std::to_string(process_id());
  const Outcome outcome = run("options_read_freed", {.environment = {{"REHEAP_MISUSE_JSON", path}}});
  EXPECT_EQ(outcome.err.find("reheap: use after free: "), 0u) << outcome.describe();
  const std::vector<json> objects = objects_in(path);
  ASSERT_EQ(objects.size(), 1u);
  const json& object = objects[0];
  ASSERT_TRUE(object.contains("block") && object.contains("made") && object.contains("freed")) << object;
  EXPECT_EQ(object["block"]["size"], 100u);
  EXPECT_EQ(object["made"]["thread"], object["freed"]["thread"]);
#if defined(__x86_64__)
  EXPECT_GT(object["made"]["stack"].size(), 0u) << object;
#endif
}
#endif

TEST(Report, IsUtf8WhateverItsPaths) {
  const Outcome outcome = run("report_here", {.environment = {{"REHEAP_STATS", "/no/gr\xfcn"}}});
  const json report = json::parse(outcome.out, nullptr, false);
  ASSERT_FALSE(report.is_discarded()) << outcome.describe();
  EXPECT_EQ(report["options"]["stats"].get<std::string>().substr(0, 6), "/no/gr");
}

}  // namespace
