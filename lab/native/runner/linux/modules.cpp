#include "runner/linux/modules.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "runner/linux/clock.h"

namespace runner {

namespace {

// Code that no file holds may be met at every sample: looking for it takes a twentieth of the time at most.
constexpr std::int64_t kRestsForReading = 19;
constexpr char kUnknown[] = "[unknown]";

// The kernel's words for code that no file holds.
std::string name_of(const std::string& path) {
  return path.empty() || path == "//anon" || path.starts_with("anon_inode:") ? "[generated]" : path;
}

}  // namespace

void Modules::map(pid_t process, std::uint64_t start, std::uint64_t length, const std::string& path) {
  Space& space = spaces_[process];
  const std::uint64_t end = start + length;
  auto at = space.upper_bound(start);
  if (at != space.begin()) --at;
  while (at != space.end() && at->first < end) {  // what lay there before is gone, so far as it is covered
    const auto [old_start, old] = *at;
    if (old.end <= start) {
      ++at;
      continue;
    }
    at = space.erase(at);
    if (old_start < start) space[old_start] = {start, old.path};
    if (old.end > end) space[end] = old;
  }
  space[start] = {end, known(name_of(path))};
}

void Modules::fork(pid_t child, pid_t parent) {
  if (child != parent) spaces_[child] = Space(spaces_[parent]);  // else it is a thread
}

void Modules::forget(pid_t process) {
  spaces_.erase(process);
  read_again_at_ns_.erase(process);
}

void Modules::read(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/maps";
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (!file) return;
  char line[4352];
  while (std::fgets(line, sizeof line, file)) {
    std::uint64_t start, end;
    char execute;
    int name = 0;
    line[std::strcspn(line, "\n")] = 0;
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %*c%*c%c%*c %*s %*s %*s %n", &start, &end, &execute, &name) == 3 &&
        name > 0 && execute == 'x')
      map(process, start, end - start, line + name);
  }
  std::fclose(file);
}

const std::string* Modules::find(pid_t process, std::uint64_t address) {
  const Space& space = spaces_[process];
  auto at = space.upper_bound(address);
  if (at == space.begin()) return nullptr;
  --at;
  return address < at->second.end ? at->second.path : nullptr;
}

void Modules::count(pid_t process, std::uint64_t address, std::int64_t samples) {
  const std::string* path = find(process, address);
  if (!path && now_ns() >= read_again_at_ns_[process]) {
    const std::int64_t before = own_ns();
    read(process);
    read_again_at_ns_[process] = now_ns() + kRestsForReading * (own_ns() - before);
    path = find(process, address);
  }
  samples_[path ? *path : kUnknown] += samples;
}

Profile Modules::profile(const char* source, int hz, std::int64_t lost) const {
  Profile profile{source, hz, lost, samples_};
  std::erase_if(profile.modules, [](const auto& module) { return module.second == 0; });
  return profile;
}

}  // namespace runner
