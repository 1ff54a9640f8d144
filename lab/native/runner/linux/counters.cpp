#include "runner/linux/counters.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace runner {

namespace {

struct Event {
  const char* name;
  std::uint32_t type;
  std::uint64_t config;
};

// The kernel's own, which every machine has, are counted by the same calls as the processor's.
constexpr Event kEvents[] = {
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
};

const Event* find(const std::string& name) {
  const auto* found =
      std::find_if(std::begin(kEvents), std::end(kEvents), [&](const Event& e) { return e.name == name; });
  return found == std::end(kEvents) ? nullptr : found;
}

// Outside the kernel alone: an allocator's calls into it are in system time, and without rights there is no more.
int open_counter(const Event& event, pid_t process) {
  perf_event_attr wanted{};
  wanted.size = sizeof wanted;
  wanted.type = event.type;
  wanted.config = event.config;
  wanted.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  wanted.disabled = wanted.enable_on_exec = wanted.inherit = 1;
  wanted.exclude_kernel = wanted.exclude_hv = 1;
  return static_cast<int>(syscall(SYS_perf_event_open, &wanted, process, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

Counters::Counters(pid_t process, const std::vector<std::string>& events) {
  for (const std::string& event : events)
    if (const int file = open_counter(*find(event), process); file >= 0) files_.push_back({event, file});
}

Counters::~Counters() {
  for (const File& file : files_) close(file.number);
}

bool Counters::knows(const std::string& event) { return find(event) != nullptr; }

std::vector<Count> Counters::counts() const {
  std::vector<Count> found;
  for (const File& file : files_) {
    std::int64_t reading[3];  // in the order that read_format asks for
    if (read(file.number, reading, sizeof reading) == sizeof reading)
      found.push_back({file.event, reading[0], reading[1], reading[2]});
  }
  return found;
}

}  // namespace runner
