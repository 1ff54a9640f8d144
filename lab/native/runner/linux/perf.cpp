#include "runner/linux/perf.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "runner/failure.h"
#include "runner/linux/clock.h"

namespace runner {

namespace {

// Room for about a second at 4000 Hz. One who is not root may lock half a mebibyte for each processor.
constexpr std::size_t kMostPages = 32;

// A processor may write a record a little after the time that stands in it.
constexpr std::uint64_t kWriteDelay = 10 * kMillisecond;

// The processor's clock as the timer: there is no need of a hardware counter, which virtual machines lack.
perf_event_attr attributes(int hz, bool with_kernel) {
  perf_event_attr wanted{};
  wanted.size = sizeof wanted;
  wanted.type = PERF_TYPE_SOFTWARE;
  wanted.config = PERF_COUNT_SW_CPU_CLOCK;
  wanted.sample_period = static_cast<std::uint64_t>(kSecond / hz);
  wanted.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  wanted.sample_id_all = 1;
  wanted.disabled = wanted.enable_on_exec = wanted.inherit = 1;
  wanted.mmap = wanted.mmap2 = wanted.comm = wanted.comm_exec = wanted.task = 1;
  wanted.exclude_hv = 1;
  wanted.exclude_kernel = !with_kernel;
  wanted.use_clockid = 1;
  wanted.clockid = CLOCK_MONOTONIC;
  return wanted;
}

// Most systems show a user who is not root only what runs outside the kernel.
int open_event(int hz, pid_t process, int processor) {
  int file = -1;
  for (bool with_kernel : {true, false}) {
    perf_event_attr wanted = attributes(hz, with_kernel);
    file = static_cast<int>(syscall(SYS_perf_event_open, &wanted, process, processor, -1, PERF_FLAG_FD_CLOEXEC));
    if (file >= 0 || (errno != EACCES && errno != EPERM)) return file;
  }
  return file;
}

// What follows the header of each kind of record: see perf_event_open(2).
struct MapBody {
  std::uint32_t process, thread;
  std::uint64_t address, length, offset;
  std::uint32_t major, minor;
  std::uint64_t inode, generation;
  std::uint32_t protection, flags;
};

struct TaskBody {
  std::uint32_t process, parent, thread, parent_thread;
};

struct SampleBody {
  std::uint64_t address;
  std::uint32_t process, thread;
  std::uint64_t time;
};

struct LostBody {
  std::uint64_t event, lost;
};

template <typename Body> Body body_of(const std::vector<char>& record) {
  Body body{};
  std::memcpy(&body, record.data() + sizeof(perf_event_header),
              std::min(sizeof body, record.size() - sizeof(perf_event_header)));
  return body;
}

// Samples hold it in their midst, all others at their end.
std::uint64_t time_of(const perf_event_header& header, const std::vector<char>& record) {
  if (header.type == PERF_RECORD_SAMPLE) return body_of<SampleBody>(record).time;
  std::uint64_t time;
  std::memcpy(&time, record.data() + record.size() - sizeof time, sizeof time);
  return time;
}

}  // namespace

bool Perf::allowed(int hz) {
  const int file = open_event(hz, 0, -1);
  if (file >= 0) close(file);
  return file >= 0;
}

Perf::Perf(pid_t process, int hz) : hz_(hz) {
  const long processors = sysconf(_SC_NPROCESSORS_CONF);
  for (int processor = 0; processor < processors; processor++)
    if (!add_ring(process, processor) && errno != ENODEV)  // that is one switched off
      throw Failure(kOwnFault, std::string("cannot profile: ") + std::strerror(errno));
}

Perf::~Perf() {
  for (const Ring& ring : rings_) {
    munmap(ring.head, ring.size + static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
    close(ring.file);
  }
}

bool Perf::add_ring(pid_t process, int processor) {
  const int file = open_event(hz_, process, processor);
  if (file < 0) return false;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (std::size_t pages = kMostPages; pages > 0; pages /= 2) {
    void* memory = mmap(nullptr, page * (pages + 1), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) continue;
    rings_.push_back({file, static_cast<perf_event_mmap_page*>(memory), page * pages});
    return true;
  }
  close(file);
  errno = EPERM;  // no room at all under the limit of locked memory
  return false;
}

void Perf::drain() {
  const std::int64_t now = now_ns();
  for (Ring& ring : rings_) read(ring);
  account_until(static_cast<std::uint64_t>(now) - kWriteDelay);
}

void Perf::read(Ring& ring) {
  const char* data = reinterpret_cast<const char*>(ring.head) + sysconf(_SC_PAGESIZE);
  const std::uint64_t written = __atomic_load_n(&ring.head->data_head, __ATOMIC_ACQUIRE);
  std::uint64_t at = ring.head->data_tail;
  const auto copy = [&](void* to, std::size_t size) {  // a record may lie across the ring's end
    for (std::size_t i = 0; i < size; i++) static_cast<char*>(to)[i] = data[(at + i) % ring.size];
  };
  while (at < written) {
    perf_event_header header;
    copy(&header, sizeof header);
    std::vector<char> bytes(header.size);
    copy(bytes.data(), bytes.size());
    const auto time = time_of(header, bytes);
    pending_.emplace(time, std::move(bytes));
    at += header.size;
  }
  __atomic_store_n(&ring.head->data_tail, at, __ATOMIC_RELEASE);
}

// The rings of several processors are merged by time: an address means something between two maps only.
void Perf::account_until(std::uint64_t time) {
  const auto end = pending_.lower_bound(time);
  for (auto at = pending_.begin(); at != end; ++at) account(at->second);
  pending_.erase(pending_.begin(), end);
}

void Perf::account(const std::vector<char>& record) {
  perf_event_header header;
  std::memcpy(&header, record.data(), sizeof header);
  const auto process = static_cast<pid_t>(body_of<TaskBody>(record).process);
  switch (header.type) {
  case PERF_RECORD_SAMPLE: {
    const auto sample = body_of<SampleBody>(record);
    if ((header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL)
      modules_.count_kernel();
    else
      modules_.count(static_cast<pid_t>(sample.process), sample.address);
    break;
  }
  case PERF_RECORD_MMAP2: {
    const auto map = body_of<MapBody>(record);
    modules_.map(process, map.address, map.length, record.data() + sizeof(perf_event_header) + sizeof(MapBody));
    break;
  }
  case PERF_RECORD_FORK: modules_.fork(process, static_cast<pid_t>(body_of<TaskBody>(record).parent)); break;
  case PERF_RECORD_COMM:
    if (header.misc & PERF_RECORD_MISC_COMM_EXEC) modules_.forget(process);
    break;
  case PERF_RECORD_EXIT:
    if (body_of<TaskBody>(record).thread == static_cast<std::uint32_t>(process)) modules_.forget(process);
    break;
  case PERF_RECORD_LOST: lost_ += static_cast<std::int64_t>(body_of<LostBody>(record).lost); break;
  default: break;
  }
}

Profile Perf::finish() {
  drain();
  account_until(std::numeric_limits<std::uint64_t>::max());
  return modules_.profile("perf_event", hz_, lost_);
}

}  // namespace runner
