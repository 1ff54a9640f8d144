// A program with more privileges than whoever starts it: the environment belongs to the starter, not the program.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "reheap/reheap.h"
#include "support/library.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

SCENARIO(raised_work) {
  void* block = malloc(1000);
  NEED(block);
  free(block);
  std::puts("worked");
  return 0;
}

std::string own_file() { return testing::TempDir() + "reheap-raised-" + std::to_string(process_id()); }

void expect_ignored(const char* name, const std::string& value) {
  const Outcome outcome = run("raised_work", {.environment = {{name, value}}, .raised = true});
  EXPECT_TRUE(outcome.succeeded()) << name << ": " << outcome.describe();
  EXPECT_EQ(outcome.out, "worked\n") << name;
  EXPECT_EQ(outcome.err, "") << name;
}

TEST(Raised, TheEnvironmentNamesNoFile) {
  for (const char* name : {"REHEAP_STATS", "REHEAP_DOCTOR"}) {
    expect_ignored(name, own_file());
    EXPECT_FALSE(std::filesystem::remove(own_file())) << name;
  }
}

TEST(Raised, NothingElseOfItIsRead) {
  expect_ignored("REHEAP_STATS", "1");
  expect_ignored("REHEAP_VERBOSE", "1");
  expect_ignored("REHEAP_DECAY_MS", "never");
}

SCENARIO(raised_options_by_api) {
  NEED(CONTRACT_FIND(rh_option_set)("verbose", "1"));
  return 0;
}

TEST(Raised, TheProgramItselfSetsOptions) { EXPECT_SCENARIO("raised_options_by_api", {.raised = true}); }

}  // namespace
