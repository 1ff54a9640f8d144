#include "entry/options.h"

#include <gtest/gtest.h>

#include <string>

#include "arena/arena.h"
#include "arena/realm.h"
#include "heap/idle.h"
#include "platform/fake/fake.h"
#include "support/environment.h"

namespace rh::options {
namespace {

bool set_at_start(const char* name, const char* value) { return set(name, value, When::starting); }
bool set_later(const char* name, const char* value) { return set(name, value, When::running); }

std::string said() {
  std::string text = fake::errors();
  fake::clear_errors();
  return text;
}

std::string in_force() {
  std::string text;
  {
    Text out([](const char* part, size_t length, void* to) { static_cast<std::string*>(to)->append(part, length); },
             &text);
    Json json(out);
    json.open(nullptr, '{');
    describe(json);
    json.close('}');
  }
  return text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Options, DecayTakesMillisecondsUpToTenMinutes) {
  for (const char* value : {"0", "1", "500", "0x10", "600000"}) EXPECT_TRUE(set_later("decay_ms", value)) << value;
  EXPECT_EQ(idle::decay_ms(), 600000u);
  EXPECT_TRUE(set_at_start("decay_ms", "250"));
  EXPECT_EQ(idle::decay_ms(), 250u);
  EXPECT_EQ(said(), "");
  EXPECT_TRUE(has(in_force(), "\"decay_ms\":250"));
}

TEST(Options, ABadDecayIsReportedAndIgnored) {
  set_later("decay_ms", "250");
  for (const char* value : {"600001", "-1", "1s", "1.5", "x", " 1", "99999999999999999999"}) {
    EXPECT_FALSE(set_later("decay_ms", value));
    std::string message = said();
    EXPECT_TRUE(has(message, std::string("reheap: REHEAP_DECAY_MS=") + value + " ")) << message;
    EXPECT_TRUE(has(message, "allowed: 0 to 600000\n")) << message;
  }
  EXPECT_EQ(idle::decay_ms(), 250u);
}

TEST(Options, ALimitIsWhatItSays) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  struct {
    const char *text, *in_force;
  } good[] = {{"off", "off"},
              {"256M", "hard:268435456"},
              {"256MiB", "hard:268435456"},
              {"hard:0x10000000", "hard:268435456"},
              {"75%", "hard:75%"},
              {"soft:1M", "soft:1048576"},
              {"hard:2M,soft:1M", "soft:1048576,hard:2097152"},
              {"soft:10%,hard:1G,end", "soft:10%,hard:1073741824,end"},
              {"auto", "auto"},
              {"end,auto", "auto,end"}};
  for (auto [text, shown] : good) {
    EXPECT_TRUE(set_later("limit", text)) << text;
    EXPECT_TRUE(has(in_force(), std::string("\"limit\":\"") + shown + '"')) << text << in_force();
  }
  EXPECT_EQ(said(), "");
  EXPECT_TRUE(set_at_start("limit", "5M"));
  for (const char* text : {"1023K", "0", "101%", "0%", "soft:2M,hard:1M", "1M,2M", "auto,1M", "auto,auto", "end", "1M,",
                           "soft:1M,end", "off,end", "1Mi", "1MB", " 1M", "-1M", "soft:", "18446744073709551615T"}) {
    EXPECT_FALSE(set_later("limit", text)) << text;
    EXPECT_TRUE(has(said(), "allowed: off, auto, a size of 1M or more (256M, 2G), 1% to 100%, or ")) << text;
  }
  EXPECT_EQ(g_arena.standing().limit.hard, 5 * kMiB);
  EXPECT_TRUE(set_later("limit", "off"));
  EXPECT_EQ(g_arena.standing().limit, Arena::Limit{});
}

TEST(Options, VerboseIsYesOrNo) {
  EXPECT_TRUE(set_later("verbose", "1"));
  EXPECT_TRUE(verbose());
  EXPECT_TRUE(has(in_force(), "\"verbose\":true"));
  EXPECT_FALSE(set_later("verbose", "2"));
  EXPECT_TRUE(has(said(), "REHEAP_VERBOSE=2 "));
  EXPECT_TRUE(verbose()) << "a bad value is ignored";
  EXPECT_TRUE(set_later("verbose", "0"));
  EXPECT_FALSE(verbose());
  EXPECT_FALSE(set_later("verbose", "yes"));
}

TEST(Options, StatsGoToStderrOrAFile) {
  EXPECT_STREQ(stats_target(), "");
  EXPECT_TRUE(set_later("stats", "1"));
  EXPECT_STREQ(stats_target(), "1");
  EXPECT_TRUE(set_later("stats", "dir/file \"x\".json"));
  EXPECT_STREQ(stats_target(), "dir/file \"x\".json");
  EXPECT_TRUE(has(in_force(), R"("stats":"dir/file \"x\".json")"));
  for (const char* none : {"0", "off", "OFF", ""}) {
    EXPECT_TRUE(set_later("stats", "dir/file"));
    EXPECT_TRUE(set_later("stats", none));
    EXPECT_STREQ(stats_target(), "") << none;
  }
  EXPECT_TRUE(set_later("stats", "1"));
  for (const char* word : {"yes", "No", "on", "true", "FALSE"}) {
    EXPECT_FALSE(set_later("stats", word)) << word;
    EXPECT_TRUE(has(said(), "allowed: 1 (to stderr), 0 or off (none), or a file's path"));
  }
  EXPECT_STREQ(stats_target(), "1");
  for (const char* file : {"./off", "offs", "11", "of", "y"}) {
    EXPECT_TRUE(set_later("stats", file));
    EXPECT_STREQ(stats_target(), file);
  }
  EXPECT_TRUE(set_later("stats", "1"));
  std::string long_path(5000, 'x');
  EXPECT_FALSE(set_later("stats", long_path.c_str()));
  EXPECT_STREQ(stats_target(), "1");
  EXPECT_TRUE(has(said(), "REHEAP_STATS="));
  // Each %p becomes up to ten digits, and all of it has to fit.
  std::string ids, more;
  for (int at = 0; at < 51; ++at) ids += "%p";
  for (int at = 0; at < 239; ++at) more += "%p";
  EXPECT_TRUE(set_later("stats", ids.c_str()));
  EXPECT_FALSE(set_later("stats", more.c_str()));
  EXPECT_FALSE(set_later("stats", (ids + "%p").c_str()));
  EXPECT_EQ(stats_target(), ids);
  EXPECT_TRUE(has(said(), "REHEAP_STATS="));
}

TEST(Options, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  EXPECT_FALSE(set_later("decay", "1"));
  std::string message = said();
  EXPECT_EQ(message, "reheap: no option is called decay; there are: stats verbose layers decay_ms limit huge_pages "
                     "window window_at misuse strict quarantine memory_tags misuse_json sample_guard profile "
                     "profile_rate profile_signal doctor\n");
  EXPECT_FALSE(set_later("", "1"));
  EXPECT_FALSE(set_later("DECAY_MS", "1"));
}

TEST(Options, SomeAreForTheEnvironmentOnly) {
  for (const char* name :
       {"layers", "huge_pages", "window", "window_at", "memory_tags", "profile", "profile_signal", "doctor"}) {
    EXPECT_FALSE(set_later(name, "64M"));
    std::string message = said();
    EXPECT_TRUE(has(message, std::string(name) + " can only be set in the environment (REHEAP_")) << message;
  }
}

TEST(Options, HugePagesAreAskedForAllThatIsCommitted) {
  const size_t before = g_realm.committed();
  EXPECT_TRUE(set_at_start("huge_pages", "1"));
  EXPECT_TRUE(has(in_force(), R"("huge_pages":"all")"));
  Span* span = g_arena.allocate(Units::holding(size_t{70} << 20));
  ASSERT_NE(span, nullptr);
  EXPECT_EQ(fake::huge_bytes(), g_realm.committed() - before);
  g_arena.free(span);
  EXPECT_TRUE(set_at_start("huge_pages", "0"));
}

TEST(Options, HugePagesAreRefusedWhereTheSystemHasNone) {
  fake::set_has_huge(false);
  EXPECT_FALSE(set_at_start("huge_pages", "1"));
  EXPECT_TRUE(has(said(), "REHEAP_HUGE_PAGES=1 is not possible; allowed: 0 or 1; 0 where the system"));
  EXPECT_TRUE(set_at_start("huge_pages", "0"));
  EXPECT_FALSE(set_at_start("huge_pages", "yes"));
  EXPECT_TRUE(has(in_force(), R"("huge_pages":"none")"));
  fake::set_has_huge(true);
}

TEST(Options, TheQuarantineIsTheHardenedBuilds) {
  for (const char* text : {"1", "32", "256"}) EXPECT_EQ(set_later("quarantine", text), kHardened) << text;
  for (const char* text : {"0", "257", "4294967297", "-1", "8k", ""})
    EXPECT_FALSE(set_later("quarantine", text)) << text;
  EXPECT_TRUE(has(said(), kHardened ? "allowed: 1 to 256" : "not hardened"));
}

TEST(Options, LoadReadsTheEnvironment) {
  set_environment("REHEAP_DECAY_MS", "77");
  set_environment("REHEAP_VERBOSE", "maybe");
  set_environment("REHEAP_STATS", "");  // counts as unset
  load();
  EXPECT_EQ(idle::decay_ms(), 77u);
  EXPECT_FALSE(verbose());
  EXPECT_TRUE(has(said(), "reheap: REHEAP_VERBOSE=maybe "));
}

#if UINTPTR_MAX > 0xffffffff

TEST(Options, AWindowIsASize) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  struct {
    const char* text;
    uint64_t size;
  } good[] = {{"16M", kGiB / 64},       {"16384K", kGiB / 64}, {"16777216", kGiB / 64},
              {"0x1000000", kGiB / 64}, {"3GiB", 3 * kGiB},    {"64T", 65536 * kGiB}};
  for (auto [text, size] : good) {
    EXPECT_TRUE(set_at_start("window", text)) << text;
    EXPECT_TRUE(has(in_force(), "\"window\":" + std::to_string(size) + ",")) << text << in_force();
  }
  EXPECT_EQ(said(), "");
  for (const char* text :
       {"15M", "65T", "0", "16MB", "16m", "M", "1G ", "18446744073709551615T", "99999999999999999999"}) {
    EXPECT_FALSE(set_at_start("window", text)) << text;
    EXPECT_TRUE(has(said(), "allowed: 16M to 64T\n")) << text;
  }
  EXPECT_TRUE(has(in_force(), "\"window\":70368744177664,"));
}

TEST(Options, AWindowHasAPlace) {
  EXPECT_TRUE(has(in_force(), "\"window_at\":\"anywhere\""));
  for (const char* text : {"low", "image"}) {
    EXPECT_TRUE(set_at_start("window_at", text));
    EXPECT_TRUE(has(in_force(), std::string("\"window_at\":\"") + text + '"'));
  }
  EXPECT_TRUE(set_at_start("window_at", "0x100000000"));
  EXPECT_TRUE(has(in_force(), "\"window_at\":\"address\""));
  EXPECT_EQ(said(), "");
  for (const char* text : {"high", "0x100000001", "0", "lowest", "12K", "0x100000000 "}) {
    EXPECT_FALSE(set_at_start("window_at", text)) << text;
    EXPECT_TRUE(has(said(), std::string("reheap: REHEAP_WINDOW_AT=") + text + " ")) << text;
  }
  EXPECT_TRUE(has(in_force(), "\"window_at\":\"address\""));
}

TEST(Options, AWindowIsPlacedWhenAllOptionsAreRead) {
  uintptr_t address = fake::space_start() + (size_t{1} << 30);
  set_environment("REHEAP_WINDOW", "64M");
  set_environment("REHEAP_WINDOW_AT", std::to_string(address).c_str());
  load();
  EXPECT_EQ(said(), "");
  EXPECT_EQ(g_realm.base(), address);
}

TEST(Options, AWindowThatFindsNoRoomIsReported) {
  uintptr_t address = fake::space_start() + (size_t{1} << 30);
  fake::occupy(address, kUnitSize);
  set_environment("REHEAP_WINDOW", "64M");
  set_environment("REHEAP_WINDOW_AT", std::to_string(address).c_str());
  load();
  EXPECT_EQ(said(), "reheap: REHEAP_WINDOW_AT: no room there; the heap lies where the system puts it\n");
  EXPECT_TRUE(has(in_force(), "\"window\":67108864,\"window_at\":\"anywhere\""));
}

TEST(Options, AWindowComesTooLateOnceMemoryIsTaken) {
  Units got;
  ASSERT_NE(g_realm.extend({1}, {1}, &got), nullptr);
  EXPECT_FALSE(set_at_start("window", "64M"));
  EXPECT_FALSE(set_at_start("window_at", "low"));
}

#else

TEST(Options, ThereIsNoWindowIn32Bits) {
  EXPECT_FALSE(set_at_start("window", "64M"));
  EXPECT_TRUE(has(said(), "allowed: nothing in a 32-bit process\n"));
  EXPECT_FALSE(set_at_start("window_at", "low"));
  EXPECT_TRUE(has(said(), "allowed: nothing in a 32-bit process\n"));
}

#endif

}  // namespace
}  // namespace rh::options
