// The file: what gzip and protocol buffers say must be so, and that it tells what the books do.
#include "profile/pprof.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "platform/fake/fake.h"
#include "profile/gzip.h"
#include "support/pprof_file.h"

namespace rh::profile {
namespace {

using namespace pprof_file;

class Pprof : public testing::Test {
 protected:
  Pprof() { start(1024); }
  ~Pprof() override { std::remove(path_.c_str()); }

  Fields written() {
    EXPECT_EQ(write(path_.c_str()), nullptr);
    return Fields(unpacked(read_file(path_)));
  }

  static void note(std::vector<uintptr_t> frames, size_t number, size_t size) {
    fake::set_stack(frames.data(), static_cast<unsigned>(frames.size()));
    note_allocation(reinterpret_cast<const void*>(16 * (number + 1)), size, 1024);
  }

  std::string path_ = testing::TempDir() + "pprof_test_" + std::to_string(platform::process_id());
};

constexpr size_t kAlone = size_t{1} << 20;

TEST_F(Pprof, TellsOfStacksAndTheirAmounts) {
  fake::set_clock(1000);
  start(1024);
  note({fake::kModuleStart + 0x101, fake::kModuleStart + 0x201}, 0, kAlone);
  note({fake::kModuleStart + 0x101, fake::kModuleStart + 0x201}, 1, kAlone);
  note({0x99}, 2, 3 * kAlone);
  fake::advance(50);
  note_free(reinterpret_cast<const void*>(16));
  const Fields file = written();
  const std::vector<std::string> strings = file.all(6);
  EXPECT_EQ(strings.at(0), "");
  auto text = [&](const std::string& index) { return strings.at(std::stoul(index)); };

  std::vector<std::string> types;
  for (const std::string& type : file.all(1))
    types.push_back(text(Fields(type).one(1)) + "/" + text(Fields(type).one(2)));
  EXPECT_EQ(types, (std::vector<std::string>{"alloc_objects/count", "alloc_space/bytes", "inuse_objects/count",
                                             "inuse_space/bytes", "peak_objects/count", "peak_space/bytes",
                                             "lifetime/milliseconds", "samples/count"}));
  EXPECT_EQ(text(Fields(file.one(11)).one(1)), "space");
  EXPECT_EQ(file.one(12), "1024");
  EXPECT_EQ(text(file.one(14)), "inuse_space");
  EXPECT_EQ(file.one(10), "50000000");

  const Fields mapping(file.one(3));
  EXPECT_EQ(mapping.one(1), "1");
  EXPECT_EQ(mapping.one(2), std::to_string(fake::kModuleStart));
  EXPECT_EQ(mapping.one(3), std::to_string(fake::kModuleEnd));
  EXPECT_EQ(mapping.one(4), "4096");
  EXPECT_EQ(text(mapping.one(5)), "/fake/program");
  EXPECT_EQ(text(mapping.one(6)), "01fe");

  std::map<std::string, std::string> locations;  // addresses by number
  for (const std::string& location : file.all(4)) {
    const Fields fields(location);
    EXPECT_TRUE(locations.emplace(fields.one(1), fields.one(3)).second);
    EXPECT_EQ(fields.one(2), fields.one(3) == "152" ? "0" : "1");
  }
  EXPECT_EQ(locations.size(), 3u);

  const std::vector<std::string> samples = file.all(2);
  ASSERT_EQ(samples.size(), 2u);
  const Fields first(samples[0]), second(samples[1]);
  std::vector<std::string> addresses;
  for (uint64_t number : varints(first.one(1))) addresses.push_back(locations.at(std::to_string(number)));
  EXPECT_EQ(addresses, (std::vector<std::string>{std::to_string(fake::kModuleStart + 0x100),
                                                 std::to_string(fake::kModuleStart + 0x200)}));
  EXPECT_EQ(varints(first.one(2)), (std::vector<uint64_t>{2, 2 * kAlone, 1, kAlone, 2, 2 * kAlone, 50, 2}));
  EXPECT_EQ(varints(second.one(2)), (std::vector<uint64_t>{1, 3 * kAlone, 1, 3 * kAlone, 1, 3 * kAlone, 0, 1}));

  const std::vector<std::string> curve = file.all(8000);
  ASSERT_EQ(curve.size(), 2u);
  EXPECT_EQ(varints(curve[0]), (std::vector<uint64_t>{0, 5 * kAlone}));
  EXPECT_EQ(varints(curve[1]), (std::vector<uint64_t>{50, 4 * kAlone}));
}

TEST_F(Pprof, ThatIsEmptyIsWhole) {
  const Fields file = written();
  EXPECT_EQ(file.count(2), 0u);
  EXPECT_EQ(file.count(1), 8u);
}

TEST_F(Pprof, ThatIsLongIsWhole) {
  constexpr size_t kStacks = 3000;
  std::vector<uintptr_t> frames(platform::kMostFrames);
  for (size_t i = 0; i != kStacks; ++i) {
    for (size_t at = 0; at != frames.size(); ++at) frames[at] = ~uintptr_t{0} - 7 * (i + at);
    note(frames, i, kAlone);
  }
  const Fields file = written();
  EXPECT_EQ(file.count(2), kStacks);
  EXPECT_EQ(file.count(4), kStacks + frames.size() - 1);
  for (const std::string& sample : file.all(2)) EXPECT_EQ(varints(Fields(sample).one(1)).size(), frames.size());
}

TEST_F(Pprof, SaysWhyThereIsNone) {
  note({0x99}, 0, kAlone);
  EXPECT_STREQ(write((path_ + "/no/such/folder").c_str()), "cannot be written: there is no such folder");
  const size_t before = fake::reserved_bytes();
  for (size_t nth = 1; nth != 20; ++nth) {
    fake::fail_nth(fake::Call::commit, nth);
    const char* refused = write(path_.c_str());
    if (refused == nullptr) break;
    EXPECT_STREQ(refused, "no memory to write it");
    EXPECT_LT(nth, 19u);
  }
  fake::fail_nth(fake::Call::commit, 0);
  EXPECT_EQ(fake::reserved_bytes(), before);
}

TEST(ProfileGzip, IsRightAtTheEdgesOfBlocks) {
  const std::string path = testing::TempDir() + "gzip_test_" + std::to_string(platform::process_id());
  static Gzip gzip;
  for (size_t length : {size_t{0}, size_t{1}, size_t{61439}, size_t{61440}, size_t{61441}, size_t{200000}}) {
    std::string text(length, 0);
    for (size_t i = 0; i != length; ++i) text[i] = static_cast<char>(i * i >> 3);
    {
      platform::FileWriter file(path.c_str());
      gzip.begin(file);
      gzip.write(text.data(), text.size());
      gzip.end();
    }
    EXPECT_TRUE(unpacked(read_file(path)) == text) << length;
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace rh::profile
