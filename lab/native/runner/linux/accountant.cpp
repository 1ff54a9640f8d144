#include "runner/linux/accountant.h"

#include <sys/ptrace.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "runner/linux/clock.h"
#include "runner/linux/holdings.h"
#include "runner/linux/process.h"

namespace runner {

namespace {

// With less private memory than this, it does not matter who mapped it; and what a process holds is looked at once more
// when it has grown by this part, and at its end.
constexpr std::int64_t kLeastHeld = 4096;
constexpr std::int64_t kHeldGrowth = 16;

std::string file_of(pid_t process) {
  char path[PATH_MAX];
  const ssize_t length = readlink(("/proc/" + std::to_string(process) + "/exe").c_str(), path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "";
}

}  // namespace

Accountant::Accountant(pid_t command, const char* purpose, int more)
    : Tracer(command, purpose, PTRACE_O_TRACEEXIT | more) {}

// What has ended before its birth is told was a thread, or a process that was accounted for when it stopped.
void Accountant::born(pid_t thread, pid_t parent) {
  if (process_of(thread) != thread) return;
  if (!running_.contains(thread) && file_of(thread).empty()) return;
  const std::size_t from = running(process_of(parent)).program;
  Program& forked = programs_[running(thread).first];
  if (!forked.by_exec) forked.parent = static_cast<std::int64_t>(from);
}

void Accountant::replaced(pid_t process) {
  const std::int64_t used = used_by_ns(process);
  const auto found = running_.find(process);
  if (found == running_.end()) {
    begin(process, true, used);
    return;
  }
  reckon(found->second, process);
  const std::size_t first = found->second.first;
  running_.erase(found);
  begin(process, true, used).first = first;
}

void Accountant::leaving(pid_t thread) {
  const pid_t process = process_of(thread);
  Running& one = running(process);
  reckon(one, process);
  weigh(one, process, thread == process ? 0 : one.seen_kib / kHeldGrowth);
  Figure& peak = programs_[one.program].peak_kib;
  if (const std::int64_t seen = peak_kib(thread); seen >= 0) peak = std::max(peak.value_or(0), seen);
}

void Accountant::look() {
  for (auto& [process, one] : running_) weigh(one, process, one.seen_kib / kHeldGrowth);
}

void Accountant::ended(pid_t thread) { running_.erase(thread); }

std::vector<Program> Accountant::finish() {
  std::vector<pid_t> left;
  for (const auto& [process, one] : running_) left.push_back(process);
  for (pid_t process : left) leaving(process);
  return std::move(programs_);
}

// A child may be seen to stop, and even to end, before its parent is seen to have had it.
Accountant::Running& Accountant::running(pid_t process) {
  const auto found = running_.find(process);
  return found != running_.end() ? found->second : begin(process, false, 0);
}

Accountant::Running& Accountant::begin(pid_t process, bool by_exec, std::int64_t used_ns) {
  const std::size_t place = programs_.size();
  Program program;
  program.process = process;
  program.path = file_of(process);
  program.began_ns = program.ended_ns = now_ns();
  program.by_exec = by_exec;
  programs_.push_back(program);
  return running_.insert_or_assign(process, Running{place, place, used_ns}).first->second;
}

void Accountant::reckon(Running& one, pid_t process) {
  Program& program = programs_[one.program];
  program.ended_ns = now_ns();
  program.cpu_us = std::max(program.cpu_us.value_or(0), (used_by_ns(process) - one.used_before_ns) / 1000);
}

void Accountant::weigh(Running& one, pid_t process, std::int64_t growth_kib) {
  const std::int64_t resident_private = private_kib(process);
  if (resident_private < std::max(kLeastHeld, one.seen_kib + growth_kib)) return;
  one.seen_kib = resident_private;
  Program& program = programs_[one.program];
  const std::optional<Mapped> mapped = mapped_kib(process);
  if (!mapped) return;
  program.private_kib = resident_private;
  program.mapped_kib = *mapped;
}

}  // namespace runner
