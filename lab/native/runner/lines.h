// The lines of JSON the runner writes: their names stand here and in lines.cpp alone.
//
// A figure that could not be measured is absent. Times are offsets from the command's start.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace runner {

using Figure = std::optional<std::int64_t>;

// Sums over the processes that were alive; cpu_us is what all, dead ones too, have used so far.
struct Sample {
  std::int64_t t_us = 0;
  Figure rss_kib, commit_kib, cpu_us, processes, threads;
};

struct Profile {
  std::string source;
  int hz = 0;
  std::int64_t lost = 0;
  std::map<std::string, std::int64_t> modules;  // samples in each
};

// What one process was from one exec to the next, or to its end. Times are CLOCK_MONOTONIC's. Where `began_ns` is 0,
// only the process's number is known.
struct Program {
  std::int64_t process = 0;
  std::string path;
  std::int64_t began_ns = 0, ended_ns = 0;
  Figure cpu_us;
  Figure peak_kib;       // unknown when it became another one
  Figure parent;         // the place of the one it was forked from
  bool by_exec = false;  // it began by one
  // Where it held most, and a witness was in it: what is resident and no file's, and what each file's code mapped.
  Figure private_kib;
  std::map<std::string, std::int64_t> mapped_kib;
};

// Of an event, while it was counted: `running_ns` of the `enabled_ns` that it should have been. Processors have few
// counters, and those who want one take turns.
struct Count {
  std::string event;
  std::int64_t value = 0, enabled_ns = 0, running_ns = 0;
};

struct SeenModule {
  std::string path;
  bool wines;  // one of Wine's own
};

struct End {
  Figure wall_us, user_us, system_us;
  Figure peak_rss_kib;       // of the largest single process
  Figure floor_rss_kib;      // peak_rss_kib cannot be less than this, whatever the command did
  Figure peak_tree_rss_kib;  // the largest sum over the living processes that was seen
  Figure peak_tree_pss_kib;  // the same, where a page that n processes share counts an nth in each: when several lived
  Figure peak_commit_kib;
  Figure minor_faults, major_faults, voluntary_switches, involuntary_switches;
  Figure exit, signal;
  bool timed_out = false, stopped = false;
  Figure watched;     // the process that --watch found
  Figure left;        // processes that outlived the command
  Figure sampler_us;  // the runner's own processor time meanwhile
};

class Lines {
 public:
  // Throws Failure when the file cannot be made.
  explicit Lines(const std::string& path);
  ~Lines();
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  void start(std::int64_t process);
  void sample(const Sample& sample);
  void calls(const std::vector<std::pair<std::string, std::int64_t>>& counts);
  void profile(const Profile& profile);
  void programs(const std::vector<Program>& all);
  void counters(const std::vector<Count>& counts);
  void modules(const std::vector<SeenModule>& seen);
  void end(const End& end);

  // Throws Failure when not everything could be written.
  void close();

 private:
  void put(const std::string& line);

  std::string path_;
  std::FILE* file_;
};

}  // namespace runner
