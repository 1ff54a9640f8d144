// `reheap-trace cut` and `merge`: traces out of traces. Threads are numbered anew, times are nanoseconds.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "trace/commands.h"
#include "trace/flat_map.h"
#include "trace/writer.h"

namespace trace {
namespace {

// What of the trace is wanted: [from, to) in both measures.
struct Range {
  uint64_t from_time = 0;  // nanoseconds from the start
  uint64_t to_time = UINT64_MAX;
  uint64_t from_event = 0;
  uint64_t to_event = UINT64_MAX;

  bool begun(uint64_t time, uint64_t event) const { return time >= from_time && event >= from_event; }
  bool cuts_off_the_start() const { return from_time != 0 || from_event != 0; }
  bool over(uint64_t time, uint64_t event) const { return time >= to_time || event >= to_event; }
};

double number(const std::string& name, const std::string& text) {
  char* end;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != 0 || !(value >= 0) || value > 1e15)
    throw WrongUse{name + " takes a number, not '" + text + "'"};
  return value;
}

Range take_range(std::vector<std::string>& arguments) {
  Range range;
  const auto take = [&](const char* name, double unit, uint64_t& into) {
    const std::string text = take_option(arguments, name);
    if (!text.empty()) into = static_cast<uint64_t>(std::min(number(name, text) * unit, 1e19));
  };
  take("--from-time", 1e9, range.from_time);
  take("--to-time", 1e9, range.to_time);
  take("--from-event", 1, range.from_event);
  take("--to-event", 1, range.to_event);
  if (range.from_time >= range.to_time || range.from_event >= range.to_event)
    throw WrongUse{"the range is empty: it must end after it begins"};
  return range;
}

// A block that is there when the part begins, and how it came to be.
struct Origin {
  uint64_t size = 0;
  uint64_t alignment = 0;
  uint32_t thread = 0;
  Kind kind{};
};

// Of several processes what is told of the first one, and what is missing of any.
FileHeader header_of(const std::vector<std::unique_ptr<File>>& files) {
  FileHeader header = files.front()->header();
  header.progress = missing_of(files);
  return header;
}

class Cutter {
 public:
  Cutter(std::vector<std::unique_ptr<File>>& files, Damage& damage, const std::string& out, const Range& range)
      : merge_(files, damage), writer_(out, header_of(files)), range_(range) {
    writer_.begin_at(merge_.begin());  // another process may have begun before the first one
  }

  void run() {
    for (Step step; merge_.next(step);) {
      const uint64_t since = step.time - std::min(step.time, merge_.begin());
      if (!begun_ && range_.begun(since, step.event_number)) begin(step.time);
      if (begun_ && range_.over(since, step.event_number)) break;
      end_ = step.time;
      if (begun_)
        copy(step);
      else
        remember(step);
    }
    if (!begun_) throw WrongUse{"the range begins after the end of the trace"};
    writer_.finish(end_);
  }

  void print(const Damage& damage) const {
    std::printf("{\"type\":\"part\",\"events\":%llu,\"alive_before\":%llu,%s}\n",
                static_cast<unsigned long long>(writer_.events()), static_cast<unsigned long long>(before_),
                json_damage(damage).c_str());
  }

 private:
  void remember(const Step& step) {
    if (step.what != Step::What::kAcquired && step.what != Step::What::kReleased) return;
    if (live_.find(step.address)) live_.erase(step.address);
    if (step.what == Step::What::kReleased) return;
    const Kind kind = step.event->kind == Kind::kRealloc ? Kind::kMalloc : step.event->kind;
    live_.insert(step.address, {step.size, step.event->alignment, step.thread, kind});
  }

  // What is alive is allocated first, by the thread that did so.
  void begin(uint64_t time) {
    begun_ = true;
    before_ = live_.size();
    if (range_.cuts_off_the_start()) writer_.begin_at(--time);  // before whatever frees them at once
    live_.each([&](uint64_t address, const Origin& block) {
      Event event{};
      event.kind = block.kind;
      event.thread = block.thread;
      event.time = event.begin = time;
      event.address = address;
      event.size = block.size;
      event.alignment = block.alignment;
      writer_.add(event);
    });
    live_ = {};
  }

  // A realloc is copied at its end; one whose first half lies before the part finds its block allocated above or, when
  // that half had been remembered, is an allocation.
  void copy(const Step& step) {
    const bool half = step.resized && step.what == Step::What::kReleased;
    if (half && step.event->address != 0) {
      set_pending(step);
      return;
    }
    Event event = *step.event;
    event.stack = 0;
    event.thread = step.thread;
    event.address = step.address;
    event.time = event.begin = step.time;
    if (event.kind == Kind::kRealloc) complete(event, half, step.process);
    writer_.add(event);
    if (event.kind == Kind::kThreadEnd) writer_.end_thread(step.thread);
  }

  void set_pending(const Step& step) {
    if (step.thread >= pending_.size()) pending_.resize(step.thread + 1, 0);
    pending_[step.thread] = step.time;
  }

  void complete(Event& event, bool freed, uint32_t process) {
    const uint64_t begin = event.thread < pending_.size() ? pending_[event.thread] : 0;
    if (freed) {  // a realloc to nothing
      event.kind = Kind::kFree;
    } else if (begin == 0 || event.old_address == 0) {
      event.kind = Kind::kMalloc;
    } else {
      event.old_address = merge_.apart(process, event.old_address);
      event.begin = begin;
      pending_[event.thread] = 0;
    }
  }

  Merge merge_;
  Writer writer_;
  Range range_;
  FlatMap<Origin> live_;
  std::vector<uint64_t> pending_;  // by thread: when the realloc under way began
  bool begun_ = false;
  uint64_t before_ = 0;
  uint64_t end_ = 0;
};

int write_part(std::vector<std::string> arguments, const char* command, size_t least) {
  const std::string out = take_option(arguments, "-o");
  if (out.empty()) throw WrongUse{std::string(command) + " needs -o OUT"};
  const Range range = take_range(arguments);
  only_files(arguments, least);
  keep_apart(arguments, out);
  Damage damage;
  auto files = open_files(arguments, damage);
  Cutter cutter(files, damage, out, range);
  cutter.run();
  cutter.print(damage);
  return tell(damage);
}

}  // namespace

int cut(const std::vector<std::string>& arguments) { return write_part(arguments, "cut", 1); }
int merge(const std::vector<std::string>& arguments) { return write_part(arguments, "merge", 2); }

}  // namespace trace
