#include "lab.h"

#include "common/message.h"
#include "common/settings.h"
#include "early/library.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <unistd.h>

namespace rh::command {
namespace {

constexpr std::array<std::string_view, 10> lab_commands = {"allocators", "calibrate", "compare", "gate",  "profile",
                                                           "record",     "replay",    "report",  "suite", "trace"};

}  // namespace

bool is_lab_command(const char* word) {
  return word && std::find(lab_commands.begin(), lab_commands.end(), word) != lab_commands.end();
}

void become_lab(char** words) {
  // What was installed with this command goes before what else there may be.
  const std::string beside = to_string(command_path().directory()) + "/reheap-lab";
  execv(beside.c_str(), words);
  if (errno == ENOENT) execvp("reheap-lab", words);
  const int error = errno;
  if (error == ENOENT)
    throw Failure(exit_not_found,
                  std::string(words[1]) + " is the lab's, which is not installed: pip install 'reheap[lab]'");
  throw Failure(exit_not_executable, std::string("reheap-lab: ") + std::strerror(error));
}

}  // namespace rh::command
