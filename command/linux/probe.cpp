#include "probe.h"

#include "common/message.h"
#include "early/program.h"
#include "symbols.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace rh::command {
namespace {

constexpr int patience_ms = 10'000;  // a start that takes longer hangs

// Gone with the object.
class TemporaryFile {
 public:
  TemporaryFile() {
    const char* directory = std::getenv("TMPDIR");
    path_ = std::string(directory && *directory ? directory : "/tmp") + "/reheap-doctor.XXXXXX";
    const int descriptor = mkostemp(path_.data(), O_CLOEXEC);
    if (descriptor < 0)
      throw Failure(exit_failed, "cannot write " + path_ + ": " + std::strerror(errno) +
                                     "; TMPDIR may name another folder for temporary files");
    close(descriptor);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Ended {
  int error = 0;   // it could not be started
  int status = 0;  // as waitpid has it
  bool hung = false;
  std::string output;
  std::string errors;
};

int wait_patiently(pid_t child, bool& hung) {
  int status = 0;
  const timespec pause{0, 2'000'000};
  for (int waited_ms = 0; waitpid(child, &status, WNOHANG) == 0; waited_ms += 2) {
    if (waited_ms >= patience_ms) {
      hung = true;
      kill(-child, SIGKILL);  // its group: it may have started others
      waitpid(child, &status, 0);
      break;
    }
    nanosleep(&pause, nullptr);
  }
  return status;
}

Ended start(const std::string& path, char* const* arguments, const std::string& extra, char* const* environment) {
  Ended ended;
  const TemporaryFile output;
  const TemporaryFile errors;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output.path().c_str(), O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, errors.path().c_str(), O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> variables;
  for (char* const* variable = environment; *variable; ++variable) variables.push_back(*variable);
  variables.push_back(const_cast<char*>(extra.c_str()));
  variables.push_back(nullptr);
  pid_t child = 0;
  ended.error = posix_spawn(&child, path.c_str(), &files, &attributes, arguments, variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (ended.error != 0) return ended;
  ended.status = wait_patiently(child, ended.hung);
  ended.output = read_file(output.path());
  ended.errors = read_file(errors.path());
  return ended;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Its end in words, and what it said last: the loader names there what it could not do.
std::string how_it_ended(const Ended& ended) {
  std::string text;
  if (ended.error != 0) return std::string("it could not be started: ") + std::strerror(ended.error);
  if (ended.hung)
    text = "it hung at its start";
  else if (WIFSIGNALED(ended.status))
    text = std::string("it died at its start: ") + strsignal(WTERMSIG(ended.status));
  else
    text = "it ended with status " + std::to_string(WEXITSTATUS(ended.status));
  if (!ended.errors.empty()) text += " and said: " + first_line(ended.errors);
  return text;
}

// What the program's loader would load. glibc's is asked by a variable, musl's by its own command line: to it the
// variable says nothing, and the program would run.
Ended list_loaded(const std::string& path, Str loader, char* const* arguments, char* const* environment) {
  if (!is_musl_loader(loader)) return start(path, arguments, "LD_TRACE_LOADED_OBJECTS=1", environment);
  std::string words[] = {to_string(loader), "--list", path};
  char* const listing[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  return start(words[0], listing, "LD_TRACE_LOADED_OBJECTS=1", environment);
}

// Why the loader would not load the library; empty when it would.
std::string refused_by_loader(const std::string& path, Str loader, char* const* arguments, const std::string& library,
                              char* const* environment) {
  const Ended listing = list_loaded(path, loader, arguments, environment);
  const bool listed = listing.error == 0 && !listing.hung;
  if (listed && listing.output.find(library) != std::string::npos) return {};
  const bool silent = listed && listing.status == 0 && listing.errors.empty();
  return "its loader does not load " + library + (silent ? "" : ": " + how_it_ended(listing));
}

}  // namespace

ProbeResult probe(const std::string& path, Str loader, char* const* arguments, Str library, const Settings& settings) {
  ProbeResult result;
  const std::string name = to_string(library);
  char* const* environment = with_library(environ, library, settings);
  // Any other library would let the program run.
  result.failure = is_reheap(name) ? refused_by_loader(path, loader, arguments, name, environment)
                                   : name + " is not libreheap: it does not define rh_report_json";
  if (!result.failure.empty()) return result;
  const TemporaryFile report;
  const Ended ended = start(path, arguments, "REHEAP_DOCTOR=" + report.path(), environment);
  const std::string text = read_file(report.path());
  auto parsed = nlohmann::ordered_json::parse(text, nullptr, false);
  if (parsed.is_object())
    result.report = std::move(parsed);
  else if (text.empty())
    result.failure = name + " was loaded but did not report: " + how_it_ended(ended);
  else
    result.failure = name + " gave a report that cannot be read: " + first_line(text);
  return result;
}

}  // namespace rh::command
