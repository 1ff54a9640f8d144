// A multithreaded program changes its credentials just after it freed a lot: from then on nothing in it runs with the
// old ones, including whatever returns memory.
#include <dirent.h>
#include <grp.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// Used beside the C library's malloc, where only the core is linked.
#ifdef CONTRACT_LINKED
#include "reheap/reheap.h"
#define malloc rh_malloc
#define free rh_free
#endif

namespace {

constexpr int kSkipped = 77;
constexpr unsigned kNobody = 65534;
constexpr unsigned kSame = ~0u;

struct Change {
  const char* name;
  int (*make)();
  std::vector<unsigned> ids;  // real, effective and saved user, then the same for the group
};

int set_groups() {
  const gid_t groups[] = {kNobody, 1234};
  return setgroups(2, groups);
}

const Change kChanges[] = {
    {"setuid", [] { return setuid(kNobody); }, {kNobody, kNobody, kNobody, 0, 0, 0}},
    {"seteuid", [] { return seteuid(kNobody); }, {0, kNobody, 0, 0, 0, 0}},
    {"setreuid", [] { return setreuid(1, kNobody); }, {1, kNobody, kNobody, 0, 0, 0}},
    {"setresuid", [] { return setresuid(kSame, 2, kNobody); }, {0, 2, kNobody, 0, 0, 0}},
    {"setgid", [] { return setgid(kNobody); }, {0, 0, 0, kNobody, kNobody, kNobody}},
    {"setegid", [] { return setegid(kNobody); }, {0, 0, 0, 0, kNobody, 0}},
    {"setregid", [] { return setregid(1, kNobody); }, {0, 0, 0, 1, kNobody, kNobody}},
    {"setresgid", [] { return setresgid(kSame, 2, kNobody); }, {0, 0, 0, 0, 2, kNobody}},
    {"setgroups", set_groups, {0, 0, 0, 0, 0, 0}},
    {"initgroups", [] { return initgroups("root", 4321); }, {0, 0, 0, 0, 0, 0}},
};

[[noreturn]] void fail(const Change& change, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", change.name, why.c_str());
  std::_Exit(1);
}

void free_much() {
  std::vector<void*> blocks;
  for (int at = 0; at < 60000; ++at) {
    blocks.push_back(malloc(1000));
    std::memset(blocks.back(), 1, 1000);
  }
  for (void* block : blocks) free(block);
}

// The users and groups of a thread, one line each; nothing when it has ended.
std::string identity(const std::string& task) {
  FILE* status = std::fopen(("/proc/self/task/" + task + "/status").c_str(), "r");
  if (status == nullptr) return "";
  std::string found;
  char line[1024];
  while (std::fgets(line, sizeof line, status)) {
    for (const char* name : {"Uid:", "Gid:", "Groups:"})
      if (std::strncmp(line, name, std::strlen(name)) == 0) found += line;
  }
  std::fclose(status);
  return found;
}

// It runs nothing any more, but is seen until the kernel has taken it down, with what it last was: the helper after it
// was waited for.
bool is_ending(const std::string& task) {
  constexpr unsigned kExiting = 4;  // PF_EXITING of the kernel's flags, the ninth word
  FILE* file = std::fopen(("/proc/self/task/" + task + "/stat").c_str(), "r");
  if (file == nullptr) return true;
  unsigned flags = 0;
  const int found = std::fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %u", &flags);
  std::fclose(file);
  return found != 1 || (flags & kExiting) != 0;
}

std::vector<std::string> tasks() {
  std::vector<std::string> found;
  DIR* folder = opendir("/proc/self/task");
  while (const dirent* entry = folder ? readdir(folder) : nullptr)
    if (entry->d_name[0] != '.') found.push_back(entry->d_name);
  if (folder != nullptr) closedir(folder);
  return found;
}

std::ptrdiff_t threads() {
  const std::vector<std::string> all = tasks();
  return std::count_if(all.begin(), all.end(), [](const std::string& task) { return !is_ending(task); });
}

void need_one_identity(const Change& change) {
  const std::string own = identity(std::to_string(getpid()));
  for (const std::string& task : tasks()) {
    const std::string other = identity(task);
    if (!other.empty() && other != own && !is_ending(task))
      fail(change, "the process is\n" + own + "a thread\n" + other);
  }
}

void need_ids(const Change& change) {
  unsigned user[3];
  unsigned group[3];
  getresuid(&user[0], &user[1], &user[2]);
  getresgid(&group[0], &group[1], &group[2]);
  for (std::size_t at = 0; at < 6; ++at) {
    const unsigned id = at < 3 ? user[at] : group[at - 3];
    if (id != change.ids[at]) fail(change, "number " + std::to_string(at) + " is " + std::to_string(id));
  }
}

bool has_reheap() {
#ifdef CONTRACT_LINKED
  return true;
#else
  const char* mode = std::getenv("CONTRACT_MODE");
  return mode == nullptr || std::strcmp(mode, "system") != 0;
#endif
}

void* sleep_for_long(void*) {
  sleep(60);
  return nullptr;
}

void run(const Change& change) {
  pthread_t sleeper;
  pthread_create(&sleeper, nullptr, sleep_for_long, nullptr);
  // On a busy machine whoever gives memory back may be done already.
  for (int turn = 0; turn == 0 || (has_reheap() && threads() != 3); ++turn) {
    if (turn == 20) fail(change, "nobody gives memory back: this shows nothing");
    free_much();
    usleep(20000);
  }
  if (change.make() != 0) fail(change, std::strerror(errno));
  for (int round = 0; round < 8; ++round) {
    need_one_identity(change);
    need_ids(change);
    if (round == 4) free_much();
    usleep(20000);
  }
  errno = 0;
  if (geteuid() == kNobody && (setgid(1) != -1 || errno != EPERM)) fail(change, "setgid succeeds");
  errno = 0;
  if (seteuid(kSame) != -1 || errno != EINVAL) fail(change, "seteuid takes no user");
  std::_Exit(0);
}

}  // namespace

int main() {
  if (geteuid() != 0) return kSkipped;
  std::vector<pid_t> children;
  for (const Change& change : kChanges) {
    children.push_back(fork());
    if (children.back() == 0) run(change);
  }
  bool sound = true;
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    sound = sound && status == 0;
  }
  return sound ? 0 : 1;
}
