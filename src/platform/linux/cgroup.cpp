#include "platform/linux/cgroup.h"

#include <atomic>

#include "base/compiler.h"
#include "base/text.h"

namespace rh::platform::cgroup {

namespace {

// Longer paths and lines are not looked at: group names are short.
constexpr size_t kMostText = 1024;

// What is read lies here and not on the stack, which may be a coroutine's of 4 KiB.
RH_RARE_ZEROS constinit char g_buffer[256] = {}, g_line[kMostText] = {};

// The process in which a thread reads.
constinit std::atomic<uint64_t> g_reads_in{0};

// One thread at a time has all this; others wait a few milliseconds, and then go without, for who waits may be the
// handler of a signal that came to who reads. In a forked child nobody has it.
class Turn {
 public:
  Turn() {
    constexpr unsigned kGivesUpAfter = 128;
    const uint64_t process = process_id();
    for (unsigned attempt = 0; attempt < kGivesUpAfter && !mine_; ++attempt) {
      if (attempt != 0) back_off(attempt);
      mine_ = g_reads_in.exchange(process, std::memory_order_acquire) != process;
    }
  }
  ~Turn() {
    if (mine_) g_reads_in.store(0, std::memory_order_release);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool is_mine() const { return mine_; }

 private:
  bool mine_ = false;
};

// A file's lines, one after the other, cut to what fits. One file at a time.
class Lines {
 public:
  Lines(Files& files, const char* path) : files_(files), file_(files.open(path)) {
    files.failed |= file_ == Files::kFailed;
  }
  ~Lines() {
    if (file_ >= 0) files_.close(file_);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // Null at the end. Valid until the next call.
  char* next() {
    size_t length = 0;
    int character = read();
    if (character < 0) return nullptr;
    for (; character >= 0 && character != '\n'; character = read())
      if (length < sizeof(g_line) - 1) g_line[length++] = static_cast<char>(character);
    g_line[length] = 0;
    return g_line;
  }

 private:
  int read() {
    if (at_ == end_) {
      at_ = 0;
      end_ = file_ >= 0 ? files_.read(file_, g_buffer, sizeof(g_buffer)) : 0;
      if (end_ == 0) return -1;
    }
    return static_cast<unsigned char>(g_buffer[at_++]);
  }

  Files& files_;
  intptr_t file_;
  size_t at_ = 0, end_ = 0;
};

struct Path {
  char text[kMostText] = {};
  size_t length = 0;

  bool append(const char* part) {
    size_t more = __builtin_strlen(part);
    if (length + more >= kMostText) return false;
    __builtin_memcpy(text + length, part, more + 1);
    length += more;
    return true;
  }

  void cut(size_t to) { text[length = to] = 0; }

  // Without its last part, if it is longer than that.
  bool rise(size_t least) {
    if (length <= least) return false;
    size_t to = length - 1;
    while (to > least && text[to] != '/') --to;
    cut(to);
    return true;
  }
};

// Cuts the text at the next `border`, and gives what follows; null when there is none.
char* split(char* text, char border) {
  while (*text != 0 && *text != border) ++text;
  if (*text == 0) return nullptr;
  *text = 0;
  return text + 1;
}

// Whether `word` is one of a list with commas.
bool lists(const char* list, const char* word) {
  size_t length = __builtin_strlen(word);
  for (;;) {
    if (begins_with(list, word) && (list[length] == ',' || list[length] == 0)) return true;
    while (*list != 0 && *list != ',') ++list;
    if (*list++ == 0) return false;
  }
}

// "\040" and the like, as the kernel writes them.
void unescape(char* text) {
  char* to = text;
  for (; *text != 0; ++to) {
    auto digit = [text](int at) { return text[at] >= '0' && text[at] <= '7'; };
    if (text[0] == '\\' && digit(1) && digit(2) && digit(3)) {
      *to = static_cast<char>((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0'));
      text += 4;
    } else {
      *to = *text++;
    }
  }
  *to = 0;
}

// The group of this process: where its directory is, and where the hierarchy begins that can be seen.
struct Group {
  bool old = false;  // version 1
  Path directory;
  size_t top = 0;  // the length of the path of the uppermost directory
};

RH_RARE_ZEROS constinit Group g_group = {};
RH_RARE_ZEROS constinit Path g_own_path = {};

// From /proc/self/cgroup: "4:memory:/path" or, of version 2, "0::/path". Where both are there, memory is limited by the
// version that has a controller for it.
bool find_path(Files& files, bool* old, Path* path) {
  Lines lines(files, "/proc/self/cgroup");
  bool found = false;
  while (char* line = lines.next()) {
    char* controllers = split(line, ':');
    char* own = controllers != nullptr ? split(controllers, ':') : nullptr;
    if (own == nullptr) continue;
    bool is_old = lists(controllers, "memory");
    if (!is_old && !(same_text(line, "0") && *controllers == 0)) continue;
    path->cut(0);
    found = path->append(own);
    *old = is_old;
    if (is_old) break;
  }
  return found;
}

// One line of /proc/self/mountinfo, "36 35 98:0 /part /where options [more] - type source options": whether it is where
// the groups of that version lie, and then which group is at its top, and where.
bool is_mount(char* line, bool old, char** root, char** where) {
  constexpr int kRoot = 3, kWhere = 4;
  for (int field = 0; field <= kWhere; ++field) {
    (field == kRoot ? *root : *where) = line;
    line = split(line, ' ');
    if (line == nullptr) return false;
  }
  while (line != nullptr && !begins_with(line, "- ")) line = split(line, ' ');
  char* type = line != nullptr ? line + 2 : nullptr;
  char* source = type != nullptr ? split(type, ' ') : nullptr;
  char* options = source != nullptr ? split(source, ' ') : nullptr;
  if (options == nullptr) return false;
  return old ? same_text(type, "cgroup") && lists(options, "memory") : same_text(type, "cgroup2");
}

// The part of the group's path below what is mounted, which may be a part of the hierarchy; null for a group outside of
// that, or of the name space ("/../").
const char* below(const char* root, const char* group) {
  size_t length = same_text(root, "/") ? 0 : __builtin_strlen(root);
  const char* rest = group + length;
  bool inside = length == 0 || (begins_with(group, root) && (*rest == '/' || *rest == 0));
  if (!inside || begins_with(rest, "/..")) return nullptr;
  return same_text(rest, "/") ? "" : rest;
}

// Of several mounts it is the first where the group is seen. Where none is, the first tells of those above.
bool find_group(Files& files, Group* group) {
  if (!find_path(files, &group->old, &g_own_path)) return false;
  Lines lines(files, "/proc/self/mountinfo");
  char *root = nullptr, *where = nullptr;
  bool found = false;
  while (char* line = lines.next()) {
    if (!is_mount(line, group->old, &root, &where)) continue;
    unescape(root);
    unescape(where);
    const char* rest = below(root, g_own_path.text);
    if (rest == nullptr && found) continue;
    group->directory.cut(0);
    found = group->directory.append(where);
    group->top = group->directory.length;
    if (rest != nullptr) return found && group->directory.append(rest);
  }
  return found;
}

// The number a line begins with; kUnlimited for "max", and for what version 1 says instead.
uint64_t number_in(const char* line) {
  constexpr uint64_t kAllOfOld = uint64_t{1} << 62;
  uint64_t number = 0;
  const char* end = nullptr;
  return parse_number(line, &number, &end) && number < kAllOfOld ? number : Grant::kUnlimited;
}

uint64_t read_number(Files& files, Path* directory, const char* name, uint64_t otherwise) {
  size_t length = directory->length;
  if (!directory->append(name)) return otherwise;
  Lines lines(files, directory->text);
  directory->cut(length);
  const char* line = lines.next();
  return line != nullptr ? number_in(line) : otherwise;
}

// What the kernel takes back when memory is short: files that were read, and its own caches.
uint64_t read_reclaimable(Files& files, Path* directory, bool old) {
  constexpr const char* kNew[] = {"active_file ", "inactive_file ", "slab_reclaimable "};
  constexpr const char* kOld[] = {"total_active_file ", "total_inactive_file "};
  size_t length = directory->length;
  if (!directory->append("/memory.stat")) return 0;
  Lines lines(files, directory->text);
  directory->cut(length);
  uint64_t sum = 0;
  auto add = [&sum](const char* line, const char* name) {
    uint64_t number = begins_with(line, name) ? number_in(line + __builtin_strlen(name)) : 0;
    if (number != Grant::kUnlimited) sum += number;
  };
  while (const char* line = lines.next()) {
    if (old)
      for (const char* name : kOld) add(line, name);
    else
      for (const char* name : kNew) add(line, name);
  }
  return sum;
}

// Of this process, not of files: at most so much of what the heap holds was ever touched.
uint64_t read_anonymous(Files& files) {
  Lines lines(files, "/proc/self/statm");
  const char* line = lines.next();
  uint64_t size = 0, resident = 0, shared = 0;
  bool read = line != nullptr && parse_number(line, &size, &line) && *line == ' ' &&
              parse_number(line + 1, &resident, &line) && *line == ' ' && parse_number(line + 1, &shared, &line);
  return read && resident >= shared ? (resident - shared) * page_size() : Grant::kUnlimited;
}

void lower(uint64_t* limit, uint64_t to) {
  if (to < *limit) *limit = to;
}

// By one group: what is its own beside the heap stays.
void restrict(Files& files, Group* group, uint64_t heap, Grant* grant) {
  Path* directory = &group->directory;
  constexpr uint64_t kUnlimited = Grant::kUnlimited;
  uint64_t hard = read_number(files, directory, group->old ? "/memory.limit_in_bytes" : "/memory.max", kUnlimited);
  uint64_t soft = group->old ? kUnlimited : read_number(files, directory, "/memory.high", kUnlimited);
  if (hard == kUnlimited && soft == kUnlimited) return;
  uint64_t current = read_number(files, directory, group->old ? "/memory.usage_in_bytes" : "/memory.current", 0);
  if (current == kUnlimited) current = 0;
  uint64_t reclaimable = read_reclaimable(files, directory, group->old);
  uint64_t kept = current > reclaimable ? current - reclaimable : 0;
  uint64_t others = kept > heap ? kept - heap : 0;
  auto left = [others](uint64_t limit) { return limit > others ? limit - others : 0; };
  if (hard != kUnlimited) lower(&grant->hard, left(hard));
  if (soft != kUnlimited) lower(&grant->soft, left(soft));
  lower(&grant->least, hard < soft ? hard : soft);
}

uint64_t sum_of_events(Files& files, Path* directory) {
  size_t length = directory->length;
  if (!directory->append("/memory.events")) return 0;
  Lines lines(files, directory->text);
  directory->cut(length);
  uint64_t sum = 0;
  while (const char* line = lines.next()) {
    if (begins_with(line, "high ")) sum += number_in(line + 5);
    if (begins_with(line, "max ")) sum += number_in(line + 4);
  }
  return sum;
}

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345", in microseconds; counted in steps of 10 ms, so that what is
// usual under load is none.
uint64_t stalls(Files& files, const char* path) {
  constexpr uint64_t kNotable = 10'000;
  constexpr const char* kTotal = " total=";
  Lines lines(files, path);
  const char* line = lines.next();
  if (line == nullptr || !begins_with(line, "some ")) return 0;
  while (*line != 0 && !begins_with(line, kTotal)) ++line;
  uint64_t total = *line != 0 ? number_in(line + __builtin_strlen(kTotal)) : 0;
  return total != Grant::kUnlimited ? total / kNotable : 0;
}

}  // namespace

Grant read_grant(Files& files, uint64_t held) {
  Grant grant;
  const Turn turn;
  grant.known = turn.is_mine() && find_group(files, &g_group);
  if (!grant.known) return grant;
  uint64_t anonymous = read_anonymous(files), heap = held < anonymous ? held : anonymous;
  do {
    restrict(files, &g_group, heap, &grant);
  } while (g_group.directory.rise(g_group.top));
  grant.known = !files.failed;
  return grant;
}

static uint64_t group_pressure(Files& files, Group* group) {
  Path* directory = &group->directory;
  if (group->old) return read_number(files, directory, "/memory.failcnt", 0);
  size_t length = directory->length;
  uint64_t sum = directory->append("/memory.pressure") ? stalls(files, directory->text) : 0;
  directory->cut(length);
  do {
    sum += sum_of_events(files, directory);
  } while (directory->rise(group->top));
  return sum;
}

// A number that grows with what is counted.
static uint64_t pressure(Files& files) {
  uint64_t of_machine = stalls(files, "/proc/pressure/memory");
  return find_group(files, &g_group) ? of_machine + group_pressure(files, &g_group) : of_machine;
}

bool is_under_pressure(Files& files) {
  static constinit std::atomic<uint64_t> before{UINT64_MAX};
  const Turn turn;
  if (!turn.is_mine()) return false;
  uint64_t now = pressure(files);
  return !files.failed && now > before.exchange(now, std::memory_order_relaxed);
}

}  // namespace rh::platform::cgroup
