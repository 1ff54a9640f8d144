// Scenarios as children of this process.
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <sstream>
#include <string_view>

#include "support/library.h"
#include "support/process.h"
#include "support/scenario.h"

extern char** environ;

namespace contract {
namespace {

std::string contents(int file) {
  std::string text;
  char piece[4096];
  lseek(file, 0, SEEK_SET);
  for (ssize_t got; (got = read(file, piece, sizeof piece)) > 0;) text.append(piece, static_cast<std::size_t>(got));
  close(file);
  return text;
}

// glibc has a function for it since 2.27.
int memory_file(const char* name) { return static_cast<int>(syscall(SYS_memfd_create, name, 0)); }

// The words that start this program again.
std::vector<std::string> command_of(const std::string& scenario) {
  std::string self = "/proc/self/exe";
  std::vector<std::string> words;
  if (emulator()) {
    std::istringstream all(emulator());
    for (std::string word; all >> word;) words.push_back(word);
    self = real_path(self);  // else the emulator
  }
  words.insert(words.end(), {self, "--scenario", scenario});
  return words;
}

constexpr const char* kAddressSpace = "QEMU_RESERVED_VA";

// The environment with the scenario's own settings replacing those of the same name. QEMU is itself a program of this
// machine: QEMU_SET_ENV tells it what to preload, and it gives programs less address space where the kernel has limits.
std::vector<std::string> merged_environment(const Conditions& conditions) {
  std::vector<std::string> merged;
  for (const Limit& limit : conditions.limits)
    if (emulator()) merged.push_back(kAddressSpace + ("=" + std::to_string(limit.bytes)));
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view setting(*entry);
    const std::string_view name = setting.substr(0, setting.find('='));
    bool replaced = emulator() && name == "LD_PRELOAD";
    for (const auto& own : conditions.environment) replaced |= own.first == name;
    if (!replaced) merged.emplace_back(setting);
  }
  for (const auto& [name, value] : conditions.environment) merged.push_back(name + "=" + value);
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> all;
  for (std::string& text : strings) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

void apply(const std::vector<Limit>& limits) {
  if (emulator()) return;
  for (const Limit& limit : limits) {
    const rlimit bound{limit.bytes, limit.bytes};
    if (setrlimit(limit.resource == Resource::memory ? RLIMIT_AS : RLIMIT_DATA, &bound) != 0) _exit(125);
  }
}

// The address of the words that the kernel put on the stack of a program that has not run yet.
long* first_words_of(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/stat";
  std::string line = contents(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  constexpr int kStartOfStack = 28;  // counted from 1; the second is the name, in parentheses
  std::size_t at = line.rfind(')') + 1;
  for (int field = 3; field < kStartOfStack; ++field) at = line.find(' ', at + 1);
  return reinterpret_cast<long*>(std::strtoul(line.c_str() + at, nullptr, 10));
}

// Resumes a child stopped after its exec, with AT_SECURE set in its auxiliary vector. So no file has to be setuid, and
// nobody has to be root.
bool let_go_raised(pid_t process) {
  int status = 0;
  if (waitpid(process, &status, 0) != process || !WIFSTOPPED(status)) return false;
  long* at = first_words_of(process);
  auto next = [&] { return ptrace(PTRACE_PEEKDATA, process, at++, nullptr); };
  next();  // argc
  while (next() != 0) continue;
  while (next() != 0) continue;  // the environment
  long kind = 0;
  while ((kind = next()) != AT_NULL && kind != AT_SECURE) next();
  const bool told = kind == AT_SECURE && ptrace(PTRACE_POKEDATA, process, at, reinterpret_cast<void*>(1)) == 0;
  return ptrace(PTRACE_DETACH, process, nullptr, nullptr) == 0 && told;
}

}  // namespace

std::size_t memory_limit() {
  if (const char* space = std::getenv(kAddressSpace)) return std::strtoull(space, nullptr, 0);
  rlimit bound{};
  getrlimit(RLIMIT_AS, &bound);
  if (bound.rlim_cur != RLIM_INFINITY) return bound.rlim_cur;
  getrlimit(RLIMIT_DATA, &bound);
  return bound.rlim_cur == RLIM_INFINITY ? 0 : bound.rlim_cur;
}

void enforce_limits() {}

Running::Running(std::intptr_t process, std::intptr_t out, std::intptr_t err, double end)
    : process_(process), out_(out), err_(err), end_(end) {}

Outcome Running::finish() {
  Outcome outcome;
  const int status = await(static_cast<int>(process_), end_ - seconds());
  outcome.late = status == -1;
  if (!outcome.late && WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  if (!outcome.late && WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  outcome.out = contents(static_cast<int>(out_));
  outcome.err = contents(static_cast<int>(err_));
  return outcome;
}

Running start(const std::string& scenario, const Conditions& conditions) {
  const int out = memory_file("out");
  const int err = memory_file("err");
  std::vector<std::string> environment = merged_environment(conditions);
  std::vector<std::string> arguments = command_of(scenario);
  const std::vector<char*> environment_block = pointers(environment);
  const std::vector<char*> argument_block = pointers(arguments);
  const pid_t process = fork();
  if (process == 0) {
    dup2(out, 1);
    dup2(err, 2);
    apply(conditions.limits);
    if (conditions.raised) ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    execvpe(argument_block[0], argument_block.data(), environment_block.data());
    _exit(126);
  }
  if (conditions.raised && !let_go_raised(process)) kill(process, SIGKILL);
  return Running(process, out, err, seconds() + patience(conditions.deadline));
}

int await(int process, double deadline) {
  int status = 0;
  const bool ended = eventually(patience(deadline), [&] { return waitpid(process, &status, WNOHANG) != 0; }, 0.001);
  if (ended) return status;
  kill(process, SIGKILL);
  waitpid(process, &status, 0);
  return -1;
}

bool in_child(int (*body)(), double deadline) {
  std::fflush(nullptr);
  const pid_t process = fork();
  if (process == 0) _exit(body());
  return process > 0 && await(process, deadline) == 0;
}

}  // namespace contract
