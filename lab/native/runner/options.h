// What the runner was asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace runner {

struct Options {
  std::string out;
  std::vector<std::string> set;  // NAME=VALUE
  std::vector<std::string> unset;
  std::string directory;  // empty: where the runner is
  std::string input, output, errors;
  std::optional<double> timeout;  // seconds
  int sample_ms = 10;             // 0: no samples
  int profile_hz = 0;             // 0: no profile
  bool profile_by_stops = false;
  std::vector<std::string> events;
  bool account = false;
  bool count_calls = false;
  bool modules = false;
  std::string watch;           // the name of the process whose figures are wanted
  std::vector<char*> command;  // ends with a null pointer
  bool help = false, version = false;
};

extern const char kHelp[];

// Throws Failure with kUsage.
Options parse(int count, char** words);

}  // namespace runner
