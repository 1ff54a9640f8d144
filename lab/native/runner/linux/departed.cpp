#include "runner/linux/departed.h"

#include <strings.h>
#include <sys/wait.h>

#include <algorithm>
#include <tuple>

#include "runner/linux/clock.h"
#include "runner/linux/process.h"
#include "runner/linux/tree.h"

namespace runner {

pid_t Departed::next() {
  siginfo_t news{};
  if (waitid(P_ALL, 0, &news, WEXITED | WNOHANG | WNOWAIT) != 0 || news.si_pid == 0) return -1;
  Process process(news.si_pid);
  process.look();
  next_ = {};
  next_.process = process.id;
  next_.path = process.name;
  next_.began_ns = process.began_ns;
  next_.ended_ns = now_ns();
  return process.id;
}

void Departed::ended(pid_t process, const rusage& used) {
  if (process != next_.process) return;
  next_.cpu_us = microseconds(used.ru_utime) + microseconds(used.ru_stime);
  next_.peak_kib = used.ru_maxrss;
  all_.push_back({next_, used});
}

void Departed::sort() {
  std::sort(all_.begin(), all_.end(), [](const One& one, const One& other) {
    return std::tie(one.program.began_ns, one.program.process) <
           std::tie(other.program.began_ns, other.program.process);
  });
}

std::vector<Program> Departed::programs() {
  sort();
  std::vector<Program> told;
  for (const One& one : all_) told.push_back(one.program);
  return told;
}

std::optional<End> Departed::used_since(const std::string& name) {
  sort();
  const auto has_name = [&](const One& any) { return strcasecmp(any.program.path.c_str(), name.c_str()) == 0; };
  auto one = std::find_if(all_.begin(), all_.end(), has_name);
  if (one == all_.end()) return std::nullopt;
  End sum;
  sum.watched = one->program.process;
  for (; one != all_.end(); ++one) add(sum, one->used);
  return sum;
}

}  // namespace runner
