#include <gtest/gtest.h>

#include <cstring>

#include "support/library.h"

namespace contract {
int run_scenario_here(const char* name);
void enforce_limits();
}  // namespace contract

int main(int argc, char** argv) {
  contract::mode();
  if (argc == 3 && std::strcmp(argv[1], "--scenario") == 0) {
    contract::enforce_limits();
    return contract::run_scenario_here(argv[2]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
