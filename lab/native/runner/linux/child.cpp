#include "runner/linux/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runner/failure.h"
#include "runner/linux/clock.h"

namespace runner {

namespace {

[[noreturn]] void fail(const std::string& what) { throw Failure(kOwnFault, what + ": " + std::strerror(errno)); }

// One of the command's standard files; -1: as the runner's own.
int open_for(const std::string& path, int flags) {
  if (path.empty()) return -1;
  int file = open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (file < 0) fail("cannot open " + path);
  return file;
}

bool names(const std::string& assignment, const std::string& name) {
  return assignment.size() > name.size() && assignment[name.size()] == '=' &&
         assignment.compare(0, name.size(), name) == 0;
}

// The loader takes the last of two equal names and getenv the first, so no name may stand twice.
void remove(std::vector<std::string>& all, const std::string& name) {
  std::erase_if(all, [&](const std::string& one) { return names(one, name); });
}

std::vector<std::string> environment_for(const Options& options) {
  std::vector<std::string> all;
  for (char** one = environ; *one; one++) all.push_back(*one);
  for (const std::string& name : options.unset) remove(all, name);
  for (const std::string& one : options.set) {
    remove(all, one.substr(0, one.find('=')));
    all.push_back(one);
  }
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& one : strings) result.push_back(one.data());
  result.push_back(nullptr);
  return result;
}

void restore_signals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

std::int64_t own_peak_kib() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

}  // namespace

Child::Child(const Options& options, const Preparation& prepare) {
  const int files[] = {open_for(options.input, O_RDONLY), open_for(options.output, O_WRONLY | O_CREAT | O_TRUNC),
                       open_for(options.errors, O_WRONLY | O_CREAT | O_TRUNC)};
  std::vector<std::string> assignments = environment_for(options);
  std::vector<char*> environment = pointers(assignments);
  if (pipe2(go_, O_CLOEXEC) || pipe2(gone_, O_CLOEXEC)) fail("cannot make a pipe");
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("cannot share memory with the command");
  shared_ = static_cast<Shared*>(memory);

  id_ = fork();
  if (id_ < 0) fail("cannot fork");
  if (id_ == 0) {
    for (int i = 0; i < 3; i++)
      if (files[i] >= 0) dup2(files[i], i);
    become(options, environment.data(), prepare);
  }
  setpgid(id_, id_);  // here and in the child: whoever comes first
  close(go_[0]);
  close(gone_[1]);
  for (int file : files)
    if (file >= 0) close(file);
}

Child::~Child() {
  close(go_[1]);
  close(gone_[0]);
  munmap(shared_, sizeof *shared_);
}

void Child::become(const Options& options, char** environment, const Preparation& prepare) {
  close(go_[1]);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a runner that is killed leaves no command behind
  setpgid(0, 0);
  char word;
  if (read(go_[0], &word, 1) != 1) _exit(kOwnFault);  // the runner has gone
  if (!options.directory.empty() && chdir(options.directory.c_str()) != 0) give_up("chdir");
  if (prepare && !prepare()) give_up("prepare");
  restore_signals();
  environ = environment;  // its PATH is where the command is looked for
  shared_->floor_kib = own_peak_kib();
  shared_->started_ns = now_ns();
  execvp(options.command[0], options.command.data());
  give_up("exec");
}

void Child::give_up(const char* what) {
  shared_->error = errno;
  std::snprintf(shared_->failed, sizeof shared_->failed, "%s", what);
  close(gone_[1]);  // a tracer stops the process before its end does that, and waits for this
  _exit(kOwnFault);
}

void Child::go() {
  if (write(go_[1], "!", 1) != 1) fail("cannot start the command");
}

void Child::confirm(const Options& options) {
  char nothing;
  while (read(gone_[0], &nothing, 1) < 0 && errno == EINTR) continue;
  const int error = shared_->error;
  if (error == 0) return;
  kill(id_, SIGKILL);
  waitpid(id_, nullptr, 0);
  const std::string why = std::string(": ") + std::strerror(error);
  if (std::strcmp(shared_->failed, "chdir") == 0) throw Failure(kOwnFault, "cannot enter " + options.directory + why);
  if (std::strcmp(shared_->failed, "prepare") == 0) throw Failure(kOwnFault, "--count-calls needs seccomp" + why);
  const std::string command = options.command[0];
  if (error == ENOENT || error == ENOTDIR) throw Failure(kNotFound, "cannot find " + command + why);
  throw Failure(kCannotExecute, "cannot execute " + command + why);
}

void Child::signal(int number) const { kill(-id_, number); }

}  // namespace runner
