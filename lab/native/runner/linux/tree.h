// The command and all that came of it: what it holds and has used.
//
// The tree is found through the lists of children that the kernel keeps for each thread. Those of main threads, and of
// the runner (which adopts whoever loses its parent), are read at every look; those of all threads now and then, so
// that it costs little. A process that comes and goes between two looks is not seen, but its time is: its parent waits
// for it.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "runner/lines.h"
#include "runner/linux/process.h"

namespace runner {

void add(End& sum, const rusage& used);

class Tree {
 public:
  // With a name, of which as much counts as the kernel keeps, the figures are those of the first process that has it;
  // samples also of all that begin later, if `with_later`.
  Tree(pid_t command, std::string watched_name, bool with_later);

  // Sums over the living; t_us is the caller's.
  Sample look();

  // Somebody whom the runner has waited for.
  void ended(pid_t process, const rusage& used);

  // What those waited for have used; with a name, the watched one alone.
  End used() const;

  const std::string& watched_name() const { return watched_name_; }
  bool waits_for_watched() const { return watched_ != 0 && !watched_ended_; }
  bool has_later();  // processes that began after the watched one and have not been waited for
  void kill_all();
  std::int64_t living();

 private:
  void look_at_known();
  void find_children();
  void find_children_of_threads();
  void know(const std::vector<pid_t>& children);
  bool knows(pid_t process) const;
  void add(pid_t process);
  void weigh(std::int64_t rss_kib);
  void remember_watched(const Process& process);
  Sample figures();
  Sample figures_of_watched();
  bool is_watched(const Process& process) const;

  const std::string watched_name_;
  const bool with_later_;
  ProcFile adopted_;
  std::list<Process> processes_;
  std::int64_t reaped_us_ = 0;
  std::int64_t weighed_kib_ = 0;  // the sum of resident memory at which shares were last asked for
  std::int64_t most_us_ = 0;
  End total_;
  pid_t watched_ = 0;
  std::int64_t watched_began_ns_ = 0;
  bool watched_ended_ = false;
  End of_watched_;
  std::int64_t began_ns_, spent_on_threads_ns_ = 0;
};

}  // namespace runner
