#include "lab.h"

#include "common/message.h"
#include "common/settings.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <unistd.h>

namespace rh::command {
namespace {

constexpr std::array<std::string_view, 9> lab_commands = {"compare", "suite", "report",  "gate",     "record",
                                                          "replay",  "trace", "profile", "calibrate"};

}  // namespace

bool is_lab_command(const char* word) {
  return word && std::find(lab_commands.begin(), lab_commands.end(), word) != lab_commands.end();
}

void become_lab(char** words) {
  execvp("reheap-lab", words);
  const int error = errno;
  if (error == ENOENT)
    throw Failure(exit_not_found, std::string(words[1]) + " is the lab's, which is not installed: pip install ./lab");
  throw Failure(exit_not_executable, std::string("reheap-lab: ") + std::strerror(error));
}

}  // namespace rh::command
