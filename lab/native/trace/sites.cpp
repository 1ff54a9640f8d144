// `reheap-trace sites`: what each call stack allocated, in one pass. docs/trace-format.md says how few stacks stand for
// all allocations.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "trace/commands.h"
#include "trace/flat_map.h"
#include "trace/stack_table.h"

namespace trace {
namespace {

using Number = unsigned long long;

// Blocks and bytes, each counted as often as its weight says.
struct Sum {
  double blocks = 0;
  double bytes = 0;
  void add(double weight, uint64_t size) { blocks += weight, bytes += weight * static_cast<double>(size); }
};

// What was allocated by one stack, or by all.
struct SiteTally {
  uint64_t sampled = 0;
  Sum allocated, temporary, freed, live, at_peak;
  double lifetimes = 0;    // ns of all that were freed
  uint32_t peaks_met = 0;  // by `at_peak`: it is what lived at that one
};

// The peak is known only when the trace is over. What lives of each stack is kept as it was at the latest peak when it
// first changes after that.
class LastPeak {
 public:
  void before_change(SiteTally& tally) const {
    if (tally.peaks_met == count_) return;
    tally.at_peak = tally.live;
    tally.peaks_met = count_;
  }

  void note(uint64_t live_bytes) {
    if (live_bytes <= most_) return;
    most_ = live_bytes;
    ++count_;
  }

 private:
  uint64_t most_ = 0;
  uint32_t count_ = 0;
};

struct SiteBlock {
  uint64_t size = 0;
  uint64_t born = 0;
  uint32_t tally = 0;  // 0: no stack was recorded
  uint32_t process = 0;
};

class Sites {
 public:
  Sites(std::vector<std::unique_ptr<File>>& files, Damage& damage)
      : files_(files), damage_(damage), stacks_(files.size()), merge_(files, damage, &stacks_),
        tally_of_(files.size()) {
    for (const auto& file : files_) recorded_ = recorded_ || is_recorded(*file);
  }

  void run() {
    for (Step step; merge_.next(step);) take(step);
    peak_.before_change(all_);
    for (Entry& entry : entries_) peak_.before_change(entry.tally);
  }

  void print() {
    const auto rows = together();
    std::printf("{\"pointer_bytes\":%u,\"every_bytes\":%u,\"recorded\":%s,\n\"modules\":[",
                files_.front()->header().pointer_bytes, every_bytes(), recorded_ ? "true" : "false");
    print_modules();
    std::printf("],\n\"frames\":[");
    const char* separator = "";
    for (const uint64_t address : stacks_.addresses())
      std::printf("%s\"0x%llx\"", std::exchange(separator, ","), Number{address});
    std::printf("],\n\"totals\":{");
    print_tally(all_);
    std::printf("},\n\"stacks\":[");
    separator = "";
    for (const auto& [frames, tally] : rows) {
      std::printf("%s\n{\"frames\":[", std::exchange(separator, ","));
      const char* comma = "";
      for (const uint32_t frame : frames) std::printf("%s%u", std::exchange(comma, ","), frame);
      std::printf("],");
      print_tally(tally);
      std::printf("}");
    }
    std::printf("],\n%s}\n", json_damage(damage_).c_str());
  }

 private:
  struct Entry {
    uint32_t process;
    uint32_t stack;
    SiteTally tally;
  };
  static bool is_recorded(const File& file) { return file.header().flags & kStacks; }

  uint32_t every_bytes() const {
    for (const auto& file : files_)
      if (is_recorded(*file)) return file->header().stack_bytes;
    return 0;
  }

  void take(const Step& step) {
    uint64_t& fresh = last_allocated(step.thread);
    const uint64_t last = std::exchange(fresh, 0);
    if (step.what == Step::What::kReleased) return released(step, step.address == last);
    if (step.what != Step::What::kAcquired) return;
    acquired(step);
    fresh = step.address;
  }

  uint64_t& last_allocated(uint32_t thread) {
    if (thread >= fresh_.size()) fresh_.resize(thread + 1);
    return fresh_[thread];
  }

  void acquired(const Step& step) {
    if (const SiteBlock* lost = live_.find(step.address)) {  // its free was not recorded
      const SiteBlock block = *lost;
      remove(step.address, block);
    }
    const SiteBlock block = {step.size, step.time, tally_for(step), step.process};
    live_.insert(step.address, block);
    live_bytes_ += block.size;
    each_tally(block, [&](SiteTally& tally, double weight) {
      if (block.tally != 0) ++tally.sampled;
      tally.allocated.add(weight, block.size);
      peak_.before_change(tally);
      tally.live.add(weight, block.size);
    });
    peak_.note(live_bytes_);
  }

  void released(const Step& step, bool temporary) {
    const SiteBlock* found = live_.find(step.address);
    if (!found) return;  // of the time before the recording
    const SiteBlock block = *found;
    each_tally(block, [&](SiteTally& tally, double weight) {
      tally.freed.add(weight, block.size);
      if (temporary) tally.temporary.add(weight, block.size);
      tally.lifetimes += weight * static_cast<double>(step.time - std::min(step.time, block.born));
    });
    remove(step.address, block);
  }

  void remove(uint64_t address, const SiteBlock& block) {
    each_tally(block, [&](SiteTally& tally, double weight) {
      peak_.before_change(tally);
      tally.live.add(-weight, block.size);
    });
    live_bytes_ -= block.size;
    live_.erase(address);
  }

  template <typename Change> void each_tally(const SiteBlock& block, Change change) {
    change(all_, 1.0);
    if (block.tally != 0) change(entries_[block.tally - 1].tally, weight_of(block));
  }

  // One over the chance that it was chosen.
  double weight_of(const SiteBlock& block) const {
    const uint32_t every = files_[block.process]->header().stack_bytes;
    if (every == 0) return 1;
    return -1 / std::expm1(-static_cast<double>(std::max<uint64_t>(block.size, 1)) / every);
  }

  uint32_t tally_for(const Step& step) {
    constexpr uint32_t kMostStacks = 1u << 24;
    const uint32_t stack = step.event->stack & (kMostStacks - 1);
    if (stack == 0) return 0;
    auto& known = tally_of_[step.process];
    if (stack >= known.size()) known.resize(stack + 1, 0);
    if (known[stack] == 0) {
      entries_.push_back({step.process, stack, {}});
      known[stack] = static_cast<uint32_t>(entries_.size());
    }
    return known[stack];
  }

  // Stacks of several processes that have the same frames are one.
  std::map<std::vector<uint32_t>, SiteTally> together() {
    std::map<std::vector<uint32_t>, SiteTally> rows;
    for (const Entry& entry : entries_) {
      SiteTally& row = rows[stacks_.frames_of(entry.process, entry.stack)];
      row.sampled += entry.tally.sampled;
      row.lifetimes += entry.tally.lifetimes;
      for (const auto sum :
           {&SiteTally::allocated, &SiteTally::temporary, &SiteTally::freed, &SiteTally::live, &SiteTally::at_peak}) {
        (row.*sum).blocks += (entry.tally.*sum).blocks;
        (row.*sum).bytes += (entry.tally.*sum).bytes;
      }
    }
    return rows;
  }

  void print_modules() const {
    const char* separator = "";
    for (const StackTable::Module& module : stacks_.modules()) {
      if (!module.used) continue;
      std::string id;
      for (const char byte : module.build_id) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
        id += digits;
      }
      std::printf(
          "%s\n{\"path\":%s,\"start\":\"0x%llx\",\"end\":\"0x%llx\",\"file_offset\":\"0x%llx\",\"build_id\":\"%s\"}",
          std::exchange(separator, ","), json_text(module.path).c_str(), Number{module.start},
          Number{module.start + module.bytes}, Number{module.file_offset}, id.c_str());
    }
  }

  static Number whole(double value) { return static_cast<Number>(std::llround(std::max(value, 0.0))); }

  static void print_tally(const SiteTally& tally) {
    std::printf("\"sampled\":%llu,\"allocations\":%llu,\"bytes\":%llu,\"never_freed\":%llu,\"never_freed_bytes\":%llu,"
                "\"at_peak\":%llu,\"at_peak_bytes\":%llu,\"temporary\":%llu,\"temporary_bytes\":%llu",
                Number{tally.sampled}, whole(tally.allocated.blocks), whole(tally.allocated.bytes),
                whole(tally.live.blocks), whole(tally.live.bytes), whole(tally.at_peak.blocks),
                whole(tally.at_peak.bytes), whole(tally.temporary.blocks), whole(tally.temporary.bytes));
    if (tally.freed.blocks > 0) std::printf(",\"lifetime_us\":%.3f", tally.lifetimes / tally.freed.blocks / 1000);
  }

  std::vector<std::unique_ptr<File>>& files_;
  Damage& damage_;
  StackTable stacks_;
  Merge merge_;
  std::vector<std::vector<uint32_t>> tally_of_;  // by process and stack: the place behind that in `entries_`, or 0
  std::vector<Entry> entries_;
  std::vector<uint64_t> fresh_;  // by thread: what its last event allocated, or 0
  FlatMap<SiteBlock> live_;
  SiteTally all_;
  LastPeak peak_;
  uint64_t live_bytes_ = 0;
  bool recorded_ = false;
};

}  // namespace

int sites(const std::vector<std::string>& arguments) { return report_on<Sites>(arguments); }

}  // namespace trace
