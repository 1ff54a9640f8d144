#include "settings.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "linux/stacks/source.h"

namespace recorder {
namespace {

constexpr char kSuffix[] = ".rht";

void read_settings(Settings& to) {
  const char* path = secure_getenv("REHEAP_RECORD");
  if (path && std::strlen(path) < sizeof to.path) std::strcpy(to.path, path);
  const char* limit = secure_getenv("REHEAP_RECORD_LIMIT");
  to.limit = limit ? std::strtoull(limit, nullptr, 10) : 0;
  if (to.limit == 0) to.limit = UINT64_MAX;
  const char* children = secure_getenv("REHEAP_RECORD_CHILDREN");
  to.children = !children || std::strcmp(children, "0") != 0;
  const char* stacks = secure_getenv("REHEAP_RECORD_STACKS");
  to.stacks = stacks != nullptr && can_follow_frames();
  to.stack_bytes = stacks ? static_cast<uint32_t>(std::strtoul(stacks, nullptr, 10)) : 0;
}

}  // namespace

const Settings& settings() {
  static constinit Settings all{};
  if (all.limit == 0) read_settings(all);
  return all;
}

void name_of_child(char (&name)[PATH_MAX], const char* path, long process, int count) {
  size_t stem = std::strlen(path);
  const char* suffix = "";
  if (stem > sizeof kSuffix && std::strcmp(path + stem + 1 - sizeof kSuffix, kSuffix) == 0) {
    stem -= sizeof kSuffix - 1;
    suffix = kSuffix;
  }
  char number[16] = "";
  if (count) std::snprintf(number, sizeof number, ".%d", count);
  std::snprintf(name, sizeof name, "%.*s.%ld%s%s", static_cast<int>(stem), path, process, number, suffix);
}

}  // namespace recorder
