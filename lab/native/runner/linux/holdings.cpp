#include "runner/linux/holdings.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <vector>

#include "runner/linux/process.h"
#include "witness/mappings.h"

namespace runner {

namespace {

constexpr char kWitness[] = "/libreheap-witness.so";
constexpr char kGenerated[] = "[generated]";  // code that no file holds
constexpr int kTries = 3;                     // to read the book while nobody writes in it

// What lies in one piece with memory of others is counted page by page, so far as it is no larger than this.
constexpr std::uint64_t kMostPagesCounted = std::uint64_t{1} << 22;

struct Area {
  std::uint64_t start, end;
  bool writable;
  std::string path;
  std::int64_t resident_kib = 0;
};

std::vector<Area> areas_of(pid_t process) {
  std::vector<Area> areas;
  std::FILE* file = std::fopen(("/proc/" + std::to_string(process) + "/smaps").c_str(), "re");
  if (!file) return areas;
  char line[4352];
  while (std::fgets(line, sizeof line, file)) {
    std::uint64_t start, end;
    std::int64_t resident;
    char rights[5];
    int name = 0;
    line[std::strcspn(line, "\n")] = 0;
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %n", &start, &end, rights, &name) == 3 && name > 0)
      areas.push_back({start, end, rights[1] == 'w', line + name});
    else if (!areas.empty() && std::sscanf(line, "Rss: %" SCNd64, &resident) == 1)
      areas.back().resident_kib = resident;
  }
  std::fclose(file);
  return areas;
}

bool read_memory(pid_t process, std::uint64_t address, void* to, std::size_t size) {
  const iovec here{to, size}, there{reinterpret_cast<void*>(address), size};
  return process_vm_readv(process, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
}

// Where the witness keeps its book: among its own data.
std::uint64_t book_in(pid_t process, const std::vector<Area>& areas) {
  for (const Area& area : areas) {
    if (!area.writable || !area.path.ends_with(kWitness)) continue;
    std::vector<char> data(area.end - area.start);
    if (!read_memory(process, area.start, data.data(), data.size())) continue;
    for (std::size_t at = 0; at + sizeof(ReheapMappings) <= data.size(); at += alignof(ReheapMappings))
      if (std::memcmp(data.data() + at, REHEAP_MAPPINGS_MAGIC, sizeof REHEAP_MAPPINGS_MAGIC) == 0)
        return area.start + at;
  }
  return 0;
}

// The process may go on meanwhile: what was being changed is read once more.
std::optional<std::vector<ReheapMapping>> mappings_at(pid_t process, std::uint64_t address) {
  for (int i = 0; i < kTries; i++) {
    ReheapMappings before, after;
    if (!read_memory(process, address, &before, sizeof before) || before.count > REHEAP_MOST_MAPPINGS) return {};
    std::vector<ReheapMapping> all(before.count);
    if (!all.empty() && !read_memory(process, before.mappings, all.data(), all.size() * sizeof all[0])) return {};
    if (!read_memory(process, address, &after, sizeof after)) return {};
    if (before.version % 2 == 0 && before.version == after.version) return all;
  }
  return {};
}

const std::string& file_at(const std::vector<Area>& areas, std::uint64_t address) {
  static const std::string kNone = kGenerated;
  const auto at = std::upper_bound(areas.begin(), areas.end(), address,
                                   [](std::uint64_t wanted, const Area& area) { return wanted < area.end; });
  return at != areas.end() && at->start <= address && at->path.starts_with('/') ? at->path : kNone;
}

// How much of a range is present.
std::int64_t present_kib(const ProcFile& pages, std::uint64_t start, std::uint64_t end) {
  static const auto kPage = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<std::uint64_t> words(std::min<std::uint64_t>((end - start) / kPage, 8192));
  std::int64_t present = 0;
  for (std::uint64_t at = start / kPage; at < end / kPage;) {
    const std::uint64_t wanted = std::min<std::uint64_t>(words.size(), end / kPage - at);
    const std::size_t got = pages.read_raw(words.data(), wanted * sizeof at, at * sizeof at);
    if (got == 0) break;
    const auto count = static_cast<std::ptrdiff_t>(got / sizeof at);
    present += std::count_if(words.begin(), words.begin() + count, [](std::uint64_t word) { return word >> 63; });
    at += static_cast<std::uint64_t>(count);
  }
  return present * static_cast<std::int64_t>(kPage / 1024);
}

// Attributes what is resident of each area to those who mapped parts of it. A part too large to look at page by page
// (a reservation) has what the others of its area leave.
class Reckoning {
 public:
  Reckoning(pid_t process, const std::vector<Area>& areas, const std::vector<ReheapMapping>& mappings)
      : pages_(process, "pagemap"), areas_(areas), mappings_(mappings) {}

  Mapped all() {
    for (const Area& area : areas_)
      if (area.resident_kib > 0) attribute(area);
    return std::move(found_);
  }

 private:
  void attribute(const Area& area) {
    auto at = std::upper_bound(mappings_.begin(), mappings_.end(), area.start,
                               [](std::uint64_t wanted, const ReheapMapping& one) { return wanted < one.end; });
    if (at == mappings_.end() || at->start >= area.end) return;
    std::int64_t left = area.resident_kib;
    const ReheapMapping* large = nullptr;
    std::uint64_t reached = area.start;
    for (; at != mappings_.end() && at->start < area.end; ++at) {
      const std::uint64_t start = std::max(at->start, area.start), end = std::min(at->end, area.end);
      left -= counted(reached, start).value_or(0);
      reached = end;
      const auto kib = start == area.start && end == area.end ? area.resident_kib : counted(start, end);
      if (!kib) large = &*at;
      add(*at, kib.value_or(0));
      left -= kib.value_or(0);
    }
    left -= counted(reached, area.end).value_or(0);
    if (large) add(*large, left);
  }

  // Nothing when it is too much to look at.
  std::optional<std::int64_t> counted(std::uint64_t start, std::uint64_t end) const {
    if (start >= end) return 0;
    if ((end - start) / static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) > kMostPagesCounted) return {};
    return present_kib(pages_, start, end);
  }

  void add(const ReheapMapping& mapping, std::int64_t kib) {
    if (kib > 0) found_[file_at(areas_, mapping.caller)] += kib;
  }

  const ProcFile pages_;
  const std::vector<Area>& areas_;
  const std::vector<ReheapMapping>& mappings_;
  Mapped found_;
};

}  // namespace

std::optional<Mapped> mapped_kib(pid_t process) {
  const std::vector<Area> areas = areas_of(process);
  const std::uint64_t book = book_in(process, areas);
  if (book == 0) return {};
  const auto mappings = mappings_at(process, book);
  if (!mappings) return {};
  return Reckoning(process, areas, *mappings).all();
}

std::int64_t private_kib(pid_t process) {
  char text[256];
  std::int64_t resident = 0, shared = 0;
  const ProcFile statm(process, "statm");
  if (statm.read(text, sizeof text) == 0 || std::sscanf(text, "%*d %" SCNd64 " %" SCNd64, &resident, &shared) != 2)
    return 0;
  return (resident - shared) * (sysconf(_SC_PAGESIZE) / 1024);
}

}  // namespace runner
