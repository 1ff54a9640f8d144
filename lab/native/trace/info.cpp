// `reheap-trace info`: what a program asked of its allocator, in one pass. docs/trace-replay.md says what each figure
// is.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>

#include "trace/commands.h"
#include "trace/flat_map.h"
#include "trace/size_class.h"

namespace trace {
namespace {

using Number = unsigned long long;

struct Tally {
  uint64_t blocks = 0;
  uint64_t bytes = 0;
  void add(uint64_t size) { ++blocks, bytes += size; }
  void remove(uint64_t size) { --blocks, bytes -= size; }
};

struct ClassTally {
  Tally all;
  Tally live;
  uint64_t peak_live_bytes = 0;
  uint64_t page = 0;  // where the simple allocator below puts its next block
  uint64_t page_left = 0;
};

// The simplest allocator: it lays blocks of a class one behind the other in pages, and uses a page again only when all
// in it is free. What it holds at most, beside what lives, is what a program's order of frees can cost.
class SimplePages {
 public:
  static constexpr uint64_t kPage = 4096;

  // Returns the page that holds the block; 0 when it has pages of its own.
  uint64_t place(ClassTally& tally, uint64_t class_size) {
    if (class_size > kPage) {
      hold(own_pages(class_size));
      return 0;
    }
    if (tally.page_left < class_size) {
      tally.page = ++last_page_;
      tally.page_left = kPage;
      blocks_in_.insert(tally.page, 0);
      hold(kPage);
    }
    tally.page_left -= class_size;
    uint64_t* blocks = blocks_in_.find(tally.page);
    if (!blocks) blocks = blocks_in_.insert(tally.page, 0), hold(kPage);
    ++*blocks;
    return tally.page;
  }

  void release(uint64_t page, uint64_t class_size) {
    if (page == 0) {
      held_ -= own_pages(class_size);
    } else if (uint64_t* blocks = blocks_in_.find(page); --*blocks == 0) {
      blocks_in_.erase(page);
      held_ -= kPage;
    }
  }

  uint64_t peak() const { return peak_; }

 private:
  static uint64_t own_pages(uint64_t size) { return (size + kPage - 1) / kPage * kPage; }
  void hold(uint64_t bytes) { peak_ = std::max(peak_, held_ += bytes); }

  FlatMap<uint64_t> blocks_in_;
  uint64_t last_page_ = 0;
  uint64_t held_ = 0;
  uint64_t peak_ = 0;
};

// Live memory through time in at most kMost points: when they are full, every second one goes.
class Curve {
 public:
  void add(uint64_t time, const Tally& live) {
    if (time < due_) return;
    if (points_.size() == kMost) {
      for (size_t i = 0; i < kMost / 2; ++i) points_[i] = points_[i * 2];
      points_.resize(kMost / 2);
      step_ *= 2;
    }
    points_.push_back({time, live});
    due_ = time + step_;
  }

  void print() const {
    print_row("t_us", ",", [](const Point& p) { return p.time / 1000; });
    print_row("live_bytes", ",", [](const Point& p) { return p.live.bytes; });
    print_row("live_blocks", "", [](const Point& p) { return p.live.blocks; });
  }

 private:
  static constexpr size_t kMost = 2048;
  struct Point {
    uint64_t time;
    Tally live;
  };

  template <typename Value> void print_row(const char* name, const char* end, Value value) const {
    std::printf("\"%s\":[", name);
    for (size_t i = 0; i < points_.size(); ++i) std::printf("%s%llu", i ? "," : "", Number{value(points_[i])});
    std::printf("]%s", end);
  }

  std::vector<Point> points_;
  uint64_t step_ = 10'000;
  uint64_t due_ = 0;
};

struct Block {
  uint64_t size = 0;
  uint64_t born = 0;
  uint64_t page = 0;
  uint32_t thread = 0;
};

struct ThreadTally {
  uint64_t events = 0;
  Tally allocated;
  uint64_t frees = 0;
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
};

class Info {
 public:
  Info(std::vector<std::unique_ptr<File>>& files, Damage& damage)
      : files_(files), damage_(damage), merge_(files, damage) {}

  void run() {
    for (Step step; merge_.next(step);) take(step);
    live_.each([&](uint64_t, const Block& block) { never_freed_.add(block.size); });
  }

  void print() const {
    std::printf("{\"type\":\"info\",\"files\":[");
    for (size_t i = 0; i < files_.size(); ++i) print_file(*files_[i], i);
    std::printf("],\n\"events\":%llu,\"duration_us\":%llu,\"thread_count\":%u,\"kinds\":{", Number{merge_.events()},
                Number{end_ / 1000}, merge_.threads());
    print_kinds();
    std::printf("},\n\"allocated\":{\"blocks\":%llu,\"bytes\":%llu},\"peak\":{\"live_bytes\":%llu,"
                "\"live_blocks\":%llu,"
                "\"t_us\":%llu},\"never_freed\":{\"blocks\":%llu,\"bytes\":%llu},\n",
                Number{allocated_.blocks}, Number{allocated_.bytes}, Number{peak_bytes_}, Number{peak_blocks_},
                Number{peak_at_ / 1000}, Number{never_freed_.blocks}, Number{never_freed_.bytes});
    print_frees();
    print_fragmentation();
    print_classes();
    print_lifetimes();
    print_threads();
    std::printf("\"series\":{");
    curve_.print();
    std::printf("},\n%s}\n", json_damage(damage_).c_str());
  }

 private:
  void take(const Step& step) {
    end_ = step.time - std::min(step.time, merge_.begin());
    if (!(step.resized && step.what == Step::What::kReleased)) {
      ++kinds_[static_cast<size_t>(step.event->kind) & 15];
      ++thread(step).events;
    }
    if (step.what == Step::What::kAcquired)
      acquired(step);
    else if (step.what == Step::What::kReleased)
      released(step);
  }

  ThreadTally& thread(const Step& step) {
    if (step.thread >= threads_.size()) threads_.resize(step.thread + 1);
    ThreadTally& tally = threads_[step.thread];
    tally.first = std::min(tally.first, end_);
    tally.last = end_;
    return tally;
  }

  void acquired(const Step& step) {
    if (const Block* lost = live_.find(step.address)) {
      ++missed_;
      drop(step.address, *lost);
    }
    const size_t index = class_of(step.size);
    if (index >= classes_.size()) classes_.resize(index + 1);
    ClassTally& tally = classes_[index];
    tally.all.add(step.size);
    tally.live.add(step.size);
    tally.peak_live_bytes = std::max(tally.peak_live_bytes, tally.live.bytes);
    allocated_.add(step.size);
    thread(step).allocated.add(step.size);
    now_.add(step.size);
    live_.insert(step.address, {step.size, end_, pages_.place(tally, size_of(index)), step.thread});
    if (now_.bytes > peak_bytes_) peak_bytes_ = now_.bytes, peak_at_ = end_;
    peak_blocks_ = std::max(peak_blocks_, now_.blocks);
    curve_.add(end_, now_);
  }

  void released(const Step& step) {
    const Block* found = live_.find(step.address);
    if (!found) {
      ++unknown_;
      return;
    }
    ++thread(step).frees;
    freed_.add(found->size);
    if (found->thread != step.thread) crossed_.add(found->size);
    const auto age = static_cast<size_t>(std::bit_width(end_ - std::min(end_, found->born)));
    lifetimes_[age].add(found->size);
    drop(step.address, *found);
    curve_.add(end_, now_);
  }

  void drop(uint64_t address, const Block block) {
    const size_t index = class_of(block.size);
    classes_[index].live.remove(block.size);
    pages_.release(block.page, size_of(index));
    now_.remove(block.size);
    live_.erase(address);
  }

  // ---- printing -------------------------------------------------------------------------------

  static void print_file(const File& file, size_t index) {
    const FileHeader& header = file.header();
    std::string command;
    const size_t bytes = std::min<size_t>(header.command_bytes, sizeof header.command);
    for (size_t at = 0; at < bytes;) {
      const std::string argument(header.command + at, strnlen(header.command + at, bytes - at));
      command += (at ? "," : "") + json_text(argument);
      at += argument.size() + 1;
    }
    std::printf("%s{\"path\":%s,\"process\":%llu,\"parent\":%llu,\"command\":[%s],\"system\":%s,"
                "\"recorder\":%s,\"layers\":[%s],"
                "\"forked\":%s,\"ended\":%s,\"stopped\":%u,\"lost\":%llu,\"chunks\":%zu,\"bytes\":%llu}",
                index ? "," : "", json_text(file.path()).c_str(), Number{header.process}, Number{header.parent},
                command.c_str(), json_text(fixed(header.system)).c_str(), json_text(fixed(header.recorder)).c_str(),
                layers(header.flags), header.flags & kForked ? "true" : "false",
                header.progress.ended ? "true" : "false", header.progress.stopped, Number{header.progress.lost},
                file.chunks(), Number{file.bytes()});
  }

  static const char* layers(uint32_t flags) {
    if ((flags & kSystemHeap) == 0) return "\"crt\"";
    return (flags & kRuntimes) != 0 ? "\"crt\",\"heap\"" : "\"heap\"";
  }

  template <size_t kSize> static std::string fixed(const char (&text)[kSize]) { return {text, strnlen(text, kSize)}; }

  void print_kinds() const {
    static constexpr const char* kNames[] = {nullptr,         "malloc",  "calloc", "aligned",      "free",
                                             "free_measured", "realloc", "failed", "thread_start", "thread_end"};
    const char* separator = "";
    for (size_t i = 1; i < std::size(kNames); ++i, separator = ",")
      std::printf("%s\"%s\":%llu", separator, kNames[i], Number{kinds_[i]});
  }

  static double share(uint64_t part, uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }

  void print_frees() const {
    std::printf("\"frees\":{\"blocks\":%llu,\"bytes\":%llu,\"of_unknown\":%llu,\"missed\":%llu},\n",
                Number{freed_.blocks}, Number{freed_.bytes}, Number{unknown_}, Number{missed_});
    std::printf("\"cross_thread\":{\"blocks\":%llu,\"bytes\":%llu,\"share\":%.6f,\"bytes_share\":%.6f},\n",
                Number{crossed_.blocks}, Number{crossed_.bytes}, share(crossed_.blocks, freed_.blocks),
                share(crossed_.bytes, freed_.bytes));
  }

  void print_fragmentation() const {
    uint64_t peaks = 0;
    for (const ClassTally& tally : classes_) peaks += tally.peak_live_bytes;
    const uint64_t held = std::max(pages_.peak(), peak_bytes_);
    std::printf("\"fragmentation\":{\"potential\":%.6f,\"held_peak_bytes\":%llu,\"class_peaks_bytes\":%llu,"
                "\"class_peaks_over_peak\":%.6f},\n",
                1 - share(peak_bytes_, held), Number{held}, Number{peaks}, share(peaks, peak_bytes_));
  }

  void print_class(size_t index, const char* separator) const {
    const ClassTally& tally = classes_[index];
    std::printf("%s{\"from\":%llu,\"to\":%llu,\"blocks\":%llu,\"bytes\":%llu,\"peak_live_bytes\":%llu}", separator,
                Number{index == 0 ? 0 : size_of(index - 1) + 1}, Number{size_of(index)}, Number{tally.all.blocks},
                Number{tally.all.bytes}, Number{tally.peak_live_bytes});
  }

  void print_classes() const {
    std::vector<size_t> used;
    for (size_t i = 0; i < classes_.size(); ++i)
      if (classes_[i].all.blocks != 0) used.push_back(i);
    std::printf("\"sizes\":[");
    for (size_t i = 0; i < used.size(); ++i) print_class(used[i], i ? "," : "");
    constexpr size_t kMostHot = 16;
    std::sort(used.begin(), used.end(), [&](size_t a, size_t b) {
      return std::pair(classes_[b].all.blocks, a) < std::pair(classes_[a].all.blocks, b);
    });
    used.resize(std::min(used.size(), kMostHot));
    std::printf("],\n\"hot_classes\":[");
    for (size_t i = 0; i < used.size(); ++i) print_class(used[i], i ? "," : "");
    std::printf("],\n");
  }

  void print_lifetimes() const {
    std::printf("\"lifetimes\":[");
    const char* separator = "";
    for (size_t i = 0; i < lifetimes_.size(); ++i) {
      if (lifetimes_[i].blocks == 0) continue;
      std::printf("%s{\"from_ns\":%llu,\"to_ns\":%llu,\"blocks\":%llu,\"bytes\":%llu}", separator,
                  Number{i == 0 ? 0 : uint64_t{1} << (i - 1)}, Number{i == 64 ? UINT64_MAX : uint64_t{1} << i},
                  Number{lifetimes_[i].blocks}, Number{lifetimes_[i].bytes});
      separator = ",";
    }
    std::printf("],\n");
  }

  // The busiest; `thread_count` says how many there were.
  void print_threads() const {
    constexpr size_t kMostShown = 256;
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < threads_.size(); ++i) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(threads_[b].events, a) < std::pair(threads_[a].events, b);
    });
    order.resize(std::min(order.size(), kMostShown));
    std::printf("\"threads\":[");
    for (size_t i = 0; i < order.size(); ++i) {
      const ThreadTally& tally = threads_[order[i]];
      const Merge::Thread& thread = merge_.thread(order[i]);
      std::printf("%s{\"process\":%llu,\"thread\":%u,\"events\":%llu,\"blocks\":%llu,\"bytes\":%"
                  "llu,\"frees\":%llu,"
                  "\"first_us\":%llu,\"last_us\":%llu}",
                  i ? "," : "", Number{files_[thread.process]->header().process}, thread.number, Number{tally.events},
                  Number{tally.allocated.blocks}, Number{tally.allocated.bytes}, Number{tally.frees},
                  Number{tally.first / 1000}, Number{tally.last / 1000});
    }
    std::printf("],\n");
  }

  std::vector<std::unique_ptr<File>>& files_;
  Damage& damage_;
  Merge merge_;
  FlatMap<Block> live_;
  SimplePages pages_;
  Curve curve_;
  std::vector<ClassTally> classes_;
  std::array<Tally, 65> lifetimes_{};  // by the doublings of nanoseconds
  std::array<uint64_t, 16> kinds_{};
  std::vector<ThreadTally> threads_;
  Tally allocated_, freed_, crossed_, now_, never_freed_;
  uint64_t unknown_ = 0, missed_ = 0;
  uint64_t peak_bytes_ = 0, peak_blocks_ = 0, peak_at_ = 0;
  uint64_t end_ = 0;
};

}  // namespace

int info(const std::vector<std::string>& arguments) { return report_on<Info>(arguments); }

}  // namespace trace
