// When a profile is made, and where it goes.
#include "entry/profiling.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "arena/arena.h"
#include "entry/options.h"
#include "entry/start.h"
#include "heap/sampled.h"
#include "platform/fake/fake.h"
#include "reheap/reheap.h"
#include "support/environment.h"

namespace rh::profiling {
namespace {

std::string said() {
  std::string text = fake::errors();
  fake::clear_errors();
  return text;
}

bool is_there(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file != nullptr) std::fclose(file);
  return file != nullptr;
}

class Profiling : public testing::Test {
 protected:
  // Another process may have left one there that had the same number.
  Profiling() { std::remove(path_.c_str()); }
  ~Profiling() override { std::remove(path_.c_str()); }

  void begin_with(const char* rate, const char* signal) {
    set_environment("REHEAP_PROFILE", given_.c_str());
    set_environment("REHEAP_PROFILE_RATE", rate);
    set_environment("REHEAP_PROFILE_SIGNAL", signal);
    options::load();
    begin_listening();
    ASSERT_EQ(said(), "");
  }

  std::string given_ = testing::TempDir() + "profiling_test_%p";
  std::string path_ = testing::TempDir() + "profiling_test_" + std::to_string(platform::process_id());
};

TEST_F(Profiling, BeginsAndEndsWithTheProcess) {
  begin_with("64K", "");
  EXPECT_EQ(profile::every(), 65536u);
  rh_free(rh_malloc(100000));
  EXPECT_FALSE(is_there(path_));
  end();
  EXPECT_TRUE(is_there(path_));
}

TEST_F(Profiling, AHandlerMayEndTheProcessWithinTheLibrary) {
  set_environment("REHEAP_STATS", "1");
  begin_with("64K", "");
  {
    LockGuard guard(profile::lock());
    end();
  }
  EXPECT_FALSE(is_there(path_));
  const std::string told = said();
  for (const char* what : {"profile ", "REHEAP_STATS: not written"}) EXPECT_NE(told.find(what), told.npos) << told;
  LockGuard guard(g_arena.lock());
  end();
  EXPECT_FALSE(is_there(path_));
}

TEST_F(Profiling, WithoutAPathThereIsNone) {
  given_ = "";
  begin_with("64K", "");
  EXPECT_EQ(profile::every(), 0u);
  end();
  EXPECT_EQ(said(), "");
}

TEST_F(Profiling, WithASignalBeginsAndEndsWhenThatArrives) {
  begin_with("", "12");
  EXPECT_EQ(profile::every(), 0u);
  ASSERT_TRUE(fake::send_signal());
  EXPECT_EQ(profile::every(), profile::kUsualEvery);
  EXPECT_FALSE(is_there(path_));
  ASSERT_TRUE(fake::send_signal());
  EXPECT_EQ(profile::every(), 0u);
  EXPECT_TRUE(is_there(path_));
  std::remove(path_.c_str());
  end();  // it was written
  EXPECT_FALSE(is_there(path_));
}

TEST_F(Profiling, ASignalWithinTheBooksIsHeededAfterwards) {
  begin_with("1", "12");
  profile::lock().acquire();
  ASSERT_TRUE(fake::send_signal());
  EXPECT_EQ(profile::every(), 0u);
  profile::lock().release();
  profile::note_allocation(this, 1, 1);  // whoever uses them next
  EXPECT_EQ(profile::every(), 1u);
}

TEST_F(Profiling, AChildLeavesItsParentsFileAlone) {
  given_ = path_;
  begin_with("", "");
  {
    fake::set_process_id(platform::process_id() + 1);
    end();
    EXPECT_FALSE(is_there(path_));
    fake::set_process_id(0);
  }
  end();
  EXPECT_TRUE(is_there(path_));
}

TEST_F(Profiling, IsMadeByTheProgramItself) {
  EXPECT_TRUE(rh_profile_start(1));
  fake::set_stack(nullptr, 0);
  void* block = rh_malloc(1000);
  EXPECT_TRUE(rh_profile_write(given_.c_str()));
  EXPECT_TRUE(is_there(path_));
  rh_profile_stop();
  EXPECT_EQ(profile::every(), 0u);
  rh_free(block);
  EXPECT_FALSE(rh_profile_start(~uint64_t{0}));
  EXPECT_TRUE(rh_profile_start(0));
  EXPECT_EQ(profile::every(), profile::kUsualEvery);
  rh_profile_stop();
}

TEST_F(Profiling, SaysWhyThereIsNoFile) {
  EXPECT_FALSE(rh_profile_write("/no/such/folder/file"));
  EXPECT_EQ(said(), "reheap: profile /no/such/folder/file: cannot be written: there is no such folder\n");
  EXPECT_FALSE(rh_profile_write(std::string(5000, 'x').c_str()));
  EXPECT_EQ(said(), "reheap: profile: its path is too long\n");
  EXPECT_FALSE(rh_profile_write(""));
  EXPECT_EQ(said(), "reheap: profile: no file is named: give its path, or REHEAP_PROFILE=FILE\n");
#if defined(__linux__)
  EXPECT_FALSE(rh_profile_write("/dev/full"));
  EXPECT_EQ(said(), "reheap: profile /dev/full: cannot be written: the disk is full\n");
#endif
  fake::fail_all(fake::Call::reserve, true);
  EXPECT_FALSE(rh_profile_write(path_.c_str()));
  fake::fail_all(fake::Call::reserve, false);
  EXPECT_EQ(said(), "reheap: profile " + path_ + ": no memory to write it\n");
}

TEST_F(Profiling, OptionsTakeWhatTheyCan) {
  auto set = [](const char* name, const char* value) { return options::set(name, value, options::When::starting); };
  for (const char* value : {"1", "512K", "1T"}) EXPECT_TRUE(set("profile_rate", value)) << value;
  for (const char* value : {"0", "1025G", "x", "-1", "1.5"}) EXPECT_FALSE(set("profile_rate", value)) << value;
  for (const char* value : {"0", "12"}) EXPECT_TRUE(set("profile_signal", value)) << value;
  for (const char* value : {"9", "99999999999", "x"}) EXPECT_FALSE(set("profile_signal", value)) << value;
  EXPECT_TRUE(rh_option_set("profile_rate", "4K"));
  EXPECT_EQ(profile::every(), 0u);
  EXPECT_FALSE(rh_option_set("profile_signal", "12"));
  EXPECT_TRUE(rh_profile_start(0));
  EXPECT_EQ(profile::every(), 4096u);
  EXPECT_TRUE(rh_option_set("profile_rate", "8K"));
  EXPECT_EQ(profile::every(), 8192u);
  rh_profile_stop();
}

}  // namespace
}  // namespace rh::profiling
