// What is written for listeners, by functions that stand in for the system's.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "platform/platform.h"
#include "platform/windows/probes.h"
#include "platform/windows/system.h"

namespace {

using namespace rh;

struct Written {
  EVENT_DESCRIPTOR event;
  std::vector<std::string> parts;
  std::vector<ULONG> kinds;
};

PENABLECALLBACK g_callback = nullptr;
GUID g_provider = {};
REGHANDLE g_removed = 0;
std::vector<Written> g_written;
constexpr REGHANDLE kHandle = 0x1234567890;

ULONG WINAPI add(const GUID* provider, PENABLECALLBACK callback, void*, REGHANDLE* handle) {
  g_provider = *provider;
  g_callback = callback;
  *handle = kHandle;
  return ERROR_SUCCESS;
}

ULONG WINAPI write(REGHANDLE handle, const EVENT_DESCRIPTOR* event, ULONG count, EVENT_DATA_DESCRIPTOR* data) {
  EXPECT_EQ(handle, kHandle);
  Written written = {*event, {}, {}};
  for (ULONG i = 0; i != count; ++i) {
    written.parts.emplace_back(reinterpret_cast<const char*>(static_cast<uintptr_t>(data[i].Ptr)), data[i].Size);
    written.kinds.push_back(data[i].Reserved);
  }
  g_written.push_back(written);
  SetLastError(5);
  return ERROR_SUCCESS;
}

ULONG WINAPI remove(REGHANDLE handle) {
  g_removed = handle;
  return ERROR_SUCCESS;
}

void call_back(ULONG what) { g_callback(&g_provider, what, 5, 0, 0, nullptr, nullptr); }

class Probes : public testing::Test {
 protected:
  Probes() {
    g_written.clear();
    platform::use_event_tracing({add, write, remove});
  }
  ~Probes() override { platform::forget_probes(); }
};

template <size_t kLength> std::string text(const char (&literal)[kLength]) { return {literal, kLength - 1}; }

// What TraceLogging has before a description: its length, itself included.
std::string described(const std::string& of) {
  const auto size = static_cast<uint16_t>(of.size() + 2);
  return std::string(reinterpret_cast<const char*>(&size), 2) + of;
}

std::string number(uint64_t value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }

const void* block() { return reinterpret_cast<const void*>(uintptr_t{0x12340}); }

void tell_of_all() {
  platform::probe_allocated(block(), 77, 512);
  platform::probe_freed(block());
  platform::probe_misuse("a word", 0x12340);
}

TEST_F(Probes, NothingIsWrittenUnlessSomebodyListens) {
  tell_of_all();
  EXPECT_EQ(g_written.size(), 0u);
  call_back(1);
  tell_of_all();
  EXPECT_EQ(g_written.size(), 3u);
  call_back(2);  // a session asks for what there is to say of the present
  tell_of_all();
  EXPECT_EQ(g_written.size(), 6u);
  call_back(0);
  tell_of_all();
  EXPECT_EQ(g_written.size(), 6u);
}

TEST_F(Probes, EventsSayWhatTheyConsistOf) {
  call_back(1);
  tell_of_all();
  ASSERT_EQ(g_written.size(), 3u);
  const std::string alloc = text("\0Alloc\0Address\0\25Size\0\12Weight\0\12"), free = text("\0Free\0Address\0\25");
  const std::string misuse = text("\0Misuse\0Message\0\2Address\0\25"), provider = described(text("reheap\0"));
  const std::vector<std::vector<std::string>> parts = {
      {provider, described(alloc), number(0x12340), number(77), number(512)},
      {provider, described(free), number(0x12340)},
      {provider, described(misuse), text("a word\0"), number(0x12340)}};
  for (size_t i = 0; i != parts.size(); ++i) {
    EXPECT_EQ(g_written[i].parts, parts[i]) << i;
    EXPECT_EQ(g_written[i].kinds.at(0), 2u);
    EXPECT_EQ(g_written[i].kinds.at(1), 1u);
    EXPECT_EQ(g_written[i].event.Channel, 11u);
    EXPECT_EQ(g_written[i].event.Keyword, i == 2 ? 2u : 1u);
  }
}

TEST_F(Probes, KeepTheLastError) {
  call_back(1);
  SetLastError(77);
  tell_of_all();
  EXPECT_EQ(GetLastError(), 77u);
}

TEST_F(Probes, AreForgottenBeforeTheCodeGoes) {
  call_back(1);
  platform::forget_probes();
  EXPECT_EQ(g_removed, kHandle);
  tell_of_all();
  EXPECT_EQ(g_written.size(), 0u);
}

// Whatever the system's own functions are.
TEST(ProbesOfTheSystem, CanBeAskedForAndForgotten) {
  SetLastError(77);
  platform::prepare();
  tell_of_all();
  EXPECT_EQ(GetLastError(), 77u);
  platform::forget_probes();
}

}  // namespace
