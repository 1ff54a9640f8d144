#include <cstdio>
#include <exception>

#include "runner/failure.h"
#include "runner/lines.h"
#include "runner/options.h"
#include "runner/run.h"

namespace {

void obey(const runner::Options& options) {
  if (options.help) {
    std::fputs(runner::kHelp, stdout);
  } else if (options.version) {
    std::puts("reheap-runner " REHEAP_LAB_VERSION);
  } else {
    runner::Lines lines(options.out);
    runner::run(options, lines);
    lines.close();
  }
}

}  // namespace

int main(int count, char** words) {
  try {
    obey(runner::parse(count, words));
    return 0;
  } catch (const runner::Failure& failure) {
    std::fprintf(stderr, "reheap-runner: %s\n", failure.what());
    return failure.status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reheap-runner: %s\n", error.what());
    return runner::kOwnFault;
  }
}
