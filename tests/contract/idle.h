// Shared by the tests of idle processes.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "support/scenario.h"

namespace contract {

constexpr double kAllowed = 3.0;  // for a promise of two seconds, on a busy machine

inline void free_much() {
  std::vector<void*> blocks;
  for (int at = 0; at < 60000; ++at) {
    blocks.push_back(malloc(1000));
    std::memset(blocks.back(), 1, 1000);
  }
  for (void* block : blocks) free(block);
}

// Runs all of them at once, so that they share the wait.
inline void expect_scenarios(std::initializer_list<const char*> names) {
  std::vector<Running> running;
  for (const char* name : names) running.push_back(start(name));
  auto next = running.begin();
  for (const char* name : names) {
    const Outcome outcome = (next++)->finish();
    EXPECT_TRUE(outcome.succeeded()) << name << ": " << outcome.describe();
    std::fputs(outcome.out.c_str(), stdout);
  }
}

}  // namespace contract
