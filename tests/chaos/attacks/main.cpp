// chaos_attack NAME: one attack, in a process of its own under tests/chaos/watch.py.
#include <cstdio>

#include "support/library.h"
#include "support/scenario.h"

namespace contract {
int run_scenario_here(const char* name);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: chaos_attack NAME\n", stderr);
    return 2;
  }
  return contract::run_scenario_here(argv[1]);
}
