#include "runner/lines.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <string_view>
#include <thread>

#include "runner/failure.h"
#include "runner/system.h"

namespace runner {

namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char letter : text) {
    auto code = static_cast<unsigned char>(letter);
    if (code < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", code);
      result += escape;
      continue;
    }
    if (letter == '"' || letter == '\\') result += '\\';
    result += letter;
  }
  return result + '"';
}

// One object of JSON, key by key.
class Object {
 public:
  explicit Object(const char* type) { text("type", type); }
  Object() = default;

  void text(const char* key, std::string_view value) { raw(key, quoted(value)); }
  void flag(const char* key, bool value) { raw(key, value ? "true" : "false"); }
  void figure(const char* key, Figure value) {
    if (value) raw(key, std::to_string(*value));
  }
  template <typename All, typename Describe> void list(const char* key, const All& all, Describe describe) {
    std::string list;
    for (const auto& one : all) {
      Object object;
      describe(object, one);
      list += (list.empty() ? "" : ",") + object.json();
    }
    raw(key, "[" + list + "]");
  }
  std::string json() const { return "{" + inside_ + "}"; }

 private:
  void raw(const char* key, const std::string& value) {
    inside_ += (inside_.empty() ? "" : ",") + quoted(key) + ":" + value;
  }

  std::string inside_;
};

std::string time_now() {
  auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  char date[32], all[48];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", std::gmtime(&seconds));
  int milliseconds = static_cast<int>(now.time_since_epoch().count() % 1000);
  std::snprintf(all, sizeof all, "%s.%03dZ", date, milliseconds);
  return all;
}

}  // namespace

Lines::Lines(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), kWritingMode)) {
  if (!file_) throw Failure(kOwnFault, "cannot write " + path + ": " + std::strerror(errno));
}

Lines::~Lines() {
  if (file_) std::fclose(file_);
}

// Each line goes out at once: a runner that is killed loses none, and a reader may follow.
void Lines::put(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), file_);
  std::fputc('\n', file_);
  std::fflush(file_);
}

void Lines::start(std::int64_t process) {
  Object line("start");
  line.text("runner", REHEAP_LAB_VERSION);
  line.text("system", kSystemName);
  line.figure("pid", process);
  line.text("time", time_now());
  line.figure("cores", std::thread::hardware_concurrency());
  put(line.json());
}

void Lines::sample(const Sample& sample) {
  Object line("sample");
  line.figure("t_us", sample.t_us);
  line.figure("rss_kib", sample.rss_kib);
  line.figure("commit_kib", sample.commit_kib);
  line.figure("cpu_us", sample.cpu_us);
  line.figure("processes", sample.processes);
  line.figure("threads", sample.threads);
  put(line.json());
}

void Lines::calls(const std::vector<std::pair<std::string, std::int64_t>>& counts) {
  Object line("calls");
  for (const auto& [name, count] : counts) line.figure(name.c_str(), count);
  put(line.json());
}

void Lines::modules(const std::vector<SeenModule>& seen) {
  Object line("modules");
  line.list("modules", seen, [](Object& module, const SeenModule& one) {
    module.text("path", one.path);
    module.flag("wines", one.wines);
  });
  put(line.json());
}

void Lines::profile(const Profile& profile) {
  Object line("profile");
  line.text("source", profile.source);
  line.figure("hz", profile.hz);
  line.figure("lost", profile.lost);
  line.list("modules", profile.modules, [](Object& module, const auto& one) {
    module.text("module", one.first);
    module.figure("samples", one.second);
  });
  put(line.json());
}

void Lines::programs(const std::vector<Program>& all) {
  Object line("programs");
  line.list("programs", all, [](Object& program, const Program& one) {
    program.figure("pid", one.process);
    if (!one.path.empty()) program.text("path", one.path);
    if (one.ended_ns != 0) {
      program.figure("began_ns", one.began_ns);
      program.figure("ended_ns", one.ended_ns);
    }
    program.figure("cpu_us", one.cpu_us);
    program.figure("peak_kib", one.peak_kib);
    program.figure("parent", one.parent);
    if (!one.private_kib) return;
    program.figure("private_kib", one.private_kib);
    program.list("mapped", one.mapped_kib, [](Object& mapped, const auto& file) {
      mapped.text("path", file.first);
      mapped.figure("kib", file.second);
    });
  });
  put(line.json());
}

void Lines::counters(const std::vector<Count>& counts) {
  Object line("counters");
  line.list("counters", counts, [](Object& counter, const Count& one) {
    counter.text("event", one.event);
    counter.figure("value", one.value);
    counter.figure("enabled_ns", one.enabled_ns);
    counter.figure("running_ns", one.running_ns);
  });
  put(line.json());
}

void Lines::end(const End& end) {
  Object line("end");
  line.figure("wall_us", end.wall_us);
  line.figure("user_us", end.user_us);
  line.figure("system_us", end.system_us);
  line.figure("peak_rss_kib", end.peak_rss_kib);
  line.figure("floor_rss_kib", end.floor_rss_kib);
  line.figure("peak_tree_rss_kib", end.peak_tree_rss_kib);
  line.figure("peak_tree_pss_kib", end.peak_tree_pss_kib);
  line.figure("peak_commit_kib", end.peak_commit_kib);
  line.figure("minor_faults", end.minor_faults);
  line.figure("major_faults", end.major_faults);
  line.figure("voluntary_switches", end.voluntary_switches);
  line.figure("involuntary_switches", end.involuntary_switches);
  line.figure("exit", end.exit);
  line.figure("signal", end.signal);
  line.flag("timed_out", end.timed_out);
  line.flag("stopped", end.stopped);
  line.figure("watched", end.watched);
  line.figure("left", end.left);
  line.figure("sampler_us", end.sampler_us);
  put(line.json());
}

void Lines::close() {
  bool failed = std::ferror(file_) != 0;
  failed |= std::fclose(file_) != 0;
  file_ = nullptr;
  if (failed) throw Failure(kOwnFault, "cannot write all of " + path_ + ": is the disk full?");
}

}  // namespace runner
