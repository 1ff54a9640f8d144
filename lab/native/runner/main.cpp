#include <cstdio>
#include <exception>

#include "runner/failure.h"
#include "runner/lines.h"
#include "runner/options.h"
#include "runner/run.h"

namespace {

void show(const char* text) {
  std::fputs(text, stdout);
  if (std::fflush(stdout) != 0) throw runner::Failure(runner::kOwnFault, "standard output could not be written whole");
}

void obey(const runner::Options& options) {
  if (options.help) {
    show(runner::kHelp);
  } else if (options.version) {
    show("reheap-runner " REHEAP_LAB_VERSION "\n");
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
