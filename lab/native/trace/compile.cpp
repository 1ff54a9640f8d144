// `reheap-trace compile`: from addresses and times to slots and epochs (replay/compiled.h says what they are for).
//
// Twice over the events: the first time finds the most that was ever live, by which epochs are measured.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>

#include "replay/compiled.h"
#include "trace/commands.h"
#include "trace/compiled_writer.h"
#include "trace/flat_map.h"

namespace trace {
namespace {

namespace compiled = lab::compiled;

struct Live {
  uint64_t size = 0;
  uint64_t touch_at = 0;  // where the file says how much of it was touched; 0: nowhere
  uint32_t slot = 0;
  uint32_t thread = 0;  // that handled it last
};

struct Peak {
  uint64_t bytes = 0;
  uint64_t blocks = 0;
  uint64_t end = 0;  // time of the last event
};

Peak find_peak(std::vector<std::unique_ptr<File>>& files, Damage& damage) {
  Merge merge(files, damage);
  FlatMap<uint64_t> sizes;
  Peak peak;
  uint64_t live = 0;
  const auto release = [&](uint64_t address, uint64_t size) {
    live -= size;
    sizes.erase(address);
  };
  for (Step step; merge.next(step);) {
    peak.end = step.time;
    if (step.what != Step::What::kAcquired && step.what != Step::What::kReleased) continue;
    if (const uint64_t* size = sizes.find(step.address)) release(step.address, *size);
    if (step.what == Step::What::kReleased) continue;
    sizes.insert(step.address, step.size);
    live += step.size;
    peak.bytes = std::max(peak.bytes, live);
    peak.blocks = std::max<uint64_t>(peak.blocks, sizes.size());
  }
  return peak;
}

// Cuts the events into epochs. Where little is missing to the peak they are short, so that no order the threads may
// find within two of them exceeds it by much; a block larger than an epoch has one for itself, far from its neighbours.
class Epochs {
 public:
  explicit Epochs(uint64_t peak) : peak_(peak) {}

  uint64_t least_bytes() const { return std::max<uint64_t>(512, peak_ / 400); }

  uint32_t of(uint64_t bytes, uint64_t live) {
    const uint64_t room = peak_ > live ? (peak_ - live) / 4 : 0;
    const uint64_t limit = std::clamp(room, least_bytes(), std::max(least_bytes(), peak_ / 50));
    if (bytes > limit || alone_)
      now_ += 2, used_ = 0;
    else if (used_ + bytes > limit)
      now_ += 1, used_ = 0;
    alone_ = bytes > limit;
    used_ += bytes;
    return now_;
  }

 private:
  uint64_t peak_;
  uint64_t used_ = 0;
  uint32_t now_ = 0;
  bool alone_ = false;  // the last one was large
};

// Slots that hold no block. A thread takes those it freed itself, the last one first: that it has freed them is its own
// order. Others are taken by anybody, long after they were freed, so that hardly ever has somebody to wait for that.
class Slots {
 public:
  struct Taken {
    uint32_t slot;
    bool foreign;  // its last block was another thread's to free: that has to be awaited
  };

  Taken take(uint32_t thread) {
    if (thread < own_.size() && !own_[thread].empty()) {
      const uint32_t slot = own_[thread].back();
      own_[thread].pop_back();
      return {slot, false};
    }
    if (others_.size() > kBacklog) {
      const uint32_t slot = others_.front();
      others_.pop_front();
      return {slot, true};
    }
    generation_.push_back(0);
    return {static_cast<uint32_t>(generation_.size() - 1), false};
  }

  void give(uint32_t slot, uint32_t thread) {
    if (thread >= own_.size()) own_.resize(thread + 1);
    own_[thread].push_back(slot);
    if (own_[thread].size() > kOwn) let_go(own_[thread], kOwn / 2);
  }

  void ended(uint32_t thread) {
    if (thread < own_.size()) let_go(own_[thread], own_[thread].size());
  }

  uint32_t& generation(uint32_t slot) { return generation_[slot]; }
  size_t count() const { return generation_.size(); }

 private:
  static constexpr size_t kOwn = 1024;
  static constexpr size_t kBacklog = 16 * 1024;

  void let_go(std::vector<uint32_t>& slots, size_t count) {
    const auto end = slots.begin() + static_cast<std::ptrdiff_t>(count);
    others_.insert(others_.end(), slots.begin(), end);
    slots.erase(slots.begin(), end);
  }

  std::vector<std::vector<uint32_t>> own_;  // by thread
  std::deque<uint32_t> others_;             // the longest free first
  std::vector<uint32_t> generation_;
};

class Compiler {
 public:
  Compiler(std::vector<std::unique_ptr<File>>& files, const std::string& out, const Peak& peak)
      : missing_(missing_of(files)), merge_(files, damage_), writer_(out), peak_(peak), epochs_(peak.bytes) {}

  void run() {
    for (Step step; merge_.next(step);)
      if (step.what == Step::What::kAcquired)
        acquired(step);
      else if (step.what == Step::What::kReleased)
        released(step);
      else if (step.what == Step::What::kThreadEnd)
        ended(step.thread);
    finish();
  }

  void print(const Damage& damage) const {
    std::printf("{\"type\":\"compile\",\"events\":%llu,\"operations\":%llu,\"remote_operations\":%llu,"
                "\"threads\":%llu,\"most_threads\":%u,\"slots\":%llu,\"epochs\":%llu,"
                "\"epoch_bytes\":%llu,\"peak_live_bytes\":%llu,\"peak_live_blocks\":%llu,"
                "\"frees_of_unknown\":%llu,\"frees_missed\":%llu,\"lost\":%llu,\"stopped\":%u,\"bytes\":%llu,%s}\n",
                number(merge_.events()), number(header_.operations), number(header_.remote), number(header_.threads),
                header_.most_threads, number(header_.slots), number(header_.epochs), number(header_.epoch_bytes),
                number(peak_.bytes), number(peak_.blocks), number(unknown_), number(missed_), number(missing_.lost),
                missing_.stopped, number(header_.file_bytes), json_damage(damage).c_str());
  }

 private:
  struct ThreadState {
    compiled::Thread entry{};
    uint64_t slot = 0;
    uint64_t at_ns = 0;
    uint32_t epoch = 0;
    bool begun = false;
    std::optional<Live> moving;  // between the two halves of a realloc
  };

  static unsigned long long number(uint64_t value) { return value; }

  void acquired(const Step& step) {
    if (const Live* old = live_.find(step.address)) {  // its free was not recorded
      ++missed_;
      const Live lost = *old;
      live_.erase(step.address);
      put_free(step, lost, compiled::kTouchUnknown);
    }
    auto& moving = state(step.thread).moving;
    const bool moved = step.resized && moving.has_value();
    live_.insert(step.address, moved ? put_realloc(step, *moving) : put_allocation(step));
    if (moved) moving.reset();
  }

  void released(const Step& step) {
    const Live* found = live_.find(step.address);
    if (!found) {
      ++unknown_;
      return;
    }
    const Live block = *found;
    live_.erase(step.address);
    if (step.resized && step.event->address != 0)
      state(step.thread).moving = block;
    else
      put_free(step, block, touched(*step.event));
  }

  static uint32_t touched(const Event& event) {
    if (event.kind != Kind::kFreeMeasured) return compiled::kTouchUnknown;
    return static_cast<uint32_t>(std::min<uint64_t>(event.resident_kib, 0xfffffffe));
  }

  ThreadState& state(uint32_t thread) {
    if (thread >= threads_.size()) threads_.resize(thread + 1);
    return threads_[thread];
  }

  // Puts the epoch and the time before an operation on `bytes`.
  ThreadState& prepare(const Step& step, uint64_t bytes) {
    constexpr uint64_t kFineness = 20'000;  // ns: gaps below are not kept
    const uint32_t epoch = epochs_.of(std::max<uint64_t>(bytes, 16), live_bytes_);
    ThreadState& thread = state(step.thread);
    if (!thread.begun) {
      thread.begun = true;
      thread.entry.first_epoch = thread.epoch = epoch;
    }
    if (epoch != thread.epoch) put_number(step.thread, compiled::Kind::kEpoch, epoch - thread.epoch);
    const uint64_t now = step.time - std::min(step.time, merge_.begin());
    if (now > thread.at_ns + kFineness) {
      put_number(step.thread, compiled::Kind::kAt, now - thread.at_ns);
      thread.at_ns = now;
    }
    thread.epoch = epoch;
    thread.entry.last_epoch = epoch;
    ++thread.entry.operations;
    ++header_.operations;
    return thread;
  }

  void put_number(uint32_t thread, compiled::Kind kind, uint64_t value) {
    writer_.operation(thread, [&](uint8_t* at) {
      *at++ = static_cast<uint8_t>(kind);
      return compiled::put_varint(at, value);
    });
  }

  static uint8_t* put_slot(uint8_t* at, ThreadState& thread, uint32_t slot) {
    at = compiled::put_varint(at, compiled::zigzag(static_cast<int64_t>(slot - thread.slot)));
    thread.slot = slot;
    return at;
  }

  // The size, and for large blocks how much was touched; `touch_at` becomes where that stands.
  uint8_t* put_size(uint8_t* at, uint32_t thread, uint64_t size, uint32_t touched_kib, uint64_t& touch_at) {
    at = compiled::put_varint(at, size);
    touch_at = 0;
    if (size < compiled::kLargeBlock) return at;
    touch_at = writer_.offset_of(thread, at);
    std::memcpy(at, &touched_kib, sizeof touched_kib);
    return at + sizeof touched_kib;
  }

  static uint8_t with_wait(compiled::Kind kind, bool wait) {
    return static_cast<uint8_t>(static_cast<uint8_t>(kind) | (wait ? compiled::kRemote : 0));
  }

  Live put_allocation(const Step& step) {
    ThreadState& thread = prepare(step, step.size);
    const auto [slot, foreign] = slots_.take(step.thread);
    Live block{.size = step.size, .touch_at = 0, .slot = slot, .thread = step.thread};
    const Kind asked = step.event->kind;
    const auto kind = asked == Kind::kCalloc    ? compiled::Kind::kCalloc
                      : asked == Kind::kAligned ? compiled::Kind::kAligned
                                                : compiled::Kind::kMalloc;
    writer_.operation(step.thread, [&](uint8_t* at) {
      *at++ = with_wait(kind, foreign);
      at = put_slot(at, thread, slot);
      at = put_size(at, step.thread, step.size, compiled::kTouchUnknown, block.touch_at);
      if (kind == compiled::Kind::kAligned) *at++ = static_cast<uint8_t>(std::countr_zero(step.event->alignment));
      return foreign ? compiled::put_varint(at, slots_.generation(slot)) : at;
    });
    ++slots_.generation(block.slot);
    live_bytes_ += step.size;
    return block;
  }

  // The kind, and behind the operation the generation to wait for when another thread had the block last.
  template <typename Put> void put_on_block(const Step& step, compiled::Kind kind, const Live& block, Put put) {
    const bool remote = block.thread != step.thread;
    if (remote) ++header_.remote;
    writer_.operation(step.thread, [&](uint8_t* at) {
      *at++ = with_wait(kind, remote);
      at = put(put_slot(at, state(step.thread), block.slot));
      return remote ? compiled::put_varint(at, slots_.generation(block.slot)) : at;
    });
  }

  void put_free(const Step& step, const Live& block, uint32_t touched_kib) {
    prepare(step, block.size);
    if (block.touch_at != 0) writer_.patch(block.touch_at, touched_kib);
    put_on_block(step, compiled::Kind::kFree, block, [&](uint8_t* at) {
      uint64_t unused;
      return put_size(at, step.thread, block.size, touched_kib, unused);
    });
    ++slots_.generation(block.slot);
    slots_.give(block.slot, step.thread);
    live_bytes_ -= block.size;
  }

  // How much of the old block was touched nobody knows: all of it is.
  Live put_realloc(const Step& step, const Live& old) {
    prepare(step, std::max(step.size, old.size));
    Live block = old;
    block.size = step.size;
    block.thread = step.thread;
    put_on_block(step, compiled::Kind::kRealloc, old, [&](uint8_t* at) {
      uint64_t unused;
      at = put_size(at, step.thread, old.size, compiled::kTouchUnknown, unused);
      return put_size(at, step.thread, step.size, compiled::kTouchUnknown, block.touch_at);
    });
    slots_.generation(block.slot) += 2;
    live_bytes_ += step.size - old.size;
    return block;
  }

  // Threads without operations are not replayed. A realloc cut off in the middle never happened.
  void ended(uint32_t thread) {
    if (thread < threads_.size()) writer_.end_thread(thread);
    slots_.ended(thread);
  }

  // The most threads that are between their first and their last epoch at a time.
  uint32_t most_threads(const std::vector<compiled::Thread>& threads) const {
    std::vector<uint64_t> ends;  // a heap, the earliest on top
    size_t most = 0;
    for (const compiled::Thread& thread : threads) {
      while (!ends.empty() && ends.front() + 1 < thread.first_epoch) {
        std::pop_heap(ends.begin(), ends.end(), std::greater<>());
        ends.pop_back();
      }
      ends.push_back(thread.last_epoch);
      std::push_heap(ends.begin(), ends.end(), std::greater<>());
      most = std::max(most, ends.size());
    }
    return static_cast<uint32_t>(most);
  }

  void finish() {
    std::vector<compiled::Thread> table;
    for (uint32_t i = 0; i < threads_.size(); ++i) {
      if (!threads_[i].begun) continue;
      threads_[i].entry.first_chunk = writer_.first_chunk(i);
      table.push_back(threads_[i].entry);
      header_.epochs = std::max(header_.epochs, threads_[i].entry.last_epoch + 1);
    }
    std::sort(table.begin(), table.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first_epoch, a.first_chunk) < std::pair(b.first_epoch, b.first_chunk);
    });
    header_.most_threads = most_threads(table);
    header_.slots = slots_.count();
    header_.peak_live_bytes = peak_.bytes;
    header_.peak_live_blocks = peak_.blocks;
    header_.epoch_bytes = epochs_.least_bytes();
    header_.duration_ns = peak_.end - std::min(peak_.end, merge_.begin());
    writer_.finish(header_, table);
  }

  Progress missing_;
  Damage damage_;  // told by the first pass already
  Merge merge_;
  CompiledWriter writer_;
  Peak peak_;
  Epochs epochs_;
  Slots slots_;
  FlatMap<Live> live_;
  std::vector<ThreadState> threads_;
  compiled::Header header_{};
  uint64_t live_bytes_ = 0;
  uint64_t unknown_ = 0;
  uint64_t missed_ = 0;
};

}  // namespace

int compile(const std::vector<std::string>& given) {
  std::vector<std::string> arguments = given;
  const std::string out = take_option(arguments, "-o");
  if (out.empty()) throw WrongUse{"compile needs -o OUT"};
  only_files(arguments);
  keep_apart(arguments, out);
  Damage damage;
  auto files = open_files(arguments, damage);
  const Peak peak = find_peak(files, damage);
  Compiler compiler(files, out, peak);
  compiler.run();
  compiler.print(damage);
  return tell(damage);
}

}  // namespace trace
