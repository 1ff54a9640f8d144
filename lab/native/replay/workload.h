// One copy of the recorded program: its slots, its threads, and how far each of them is.
//
// Invariants: `next[t]` is no later than the epoch of the operation that thread t does next (kEnded: none is left), and
// only grows; `front` never exceeds the least of them. A thread works in epoch E only when front + lead >= E. With a
// lead of 1 an operation of epoch E sees all of epoch E-2 done, so live memory is what it was to within two epochs. A
// long lead orders nothing that the program did not; but while far more lives than ever did it is 1, so that no thread
// fills the memory that others are to free.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "replay/compiled.h"
#include "replay/contents.h"
#include "replay/system.h"

namespace lab {

struct Slot {
  void* block;
  std::uint64_t seed;  // of its contents
  // Grows by one with each malloc and free, by two with each realloc: odd while there is a block.
  std::atomic<std::uint32_t> generation;
  std::atomic<std::uint32_t> awaited;  // somebody sleeps until the generation changes
};

// Live memory of all copies, and what went wrong in any.
struct Ledger {
  std::atomic<std::int64_t> live{0};
  std::atomic<std::int64_t> peak_live{0};
  std::atomic<std::uint64_t> own_bytes{0};  // mapped for the replayer itself
  std::atomic<std::uint64_t> most_own_bytes{0};
  std::atomic<std::uint64_t> operations{0};
  std::atomic<std::uint64_t> handoff_waits{0};
  std::atomic<std::uint64_t> handoff_wait_ns{0};
  std::atomic<std::uint64_t> epoch_waits{0};
  std::atomic<std::uint64_t> epoch_wait_ns{0};
  std::atomic<std::uint64_t> ordering_errors{0};
  std::atomic<std::uint64_t> content_errors{0};
  std::atomic<std::uint64_t> alignment_errors{0};
  std::atomic<std::uint64_t> failed_allocations{0};

  void add_live(std::int64_t bytes) { raise(peak_live, live.fetch_add(bytes, std::memory_order_relaxed) + bytes); }
  void add_own(std::uint64_t bytes) {
    raise(most_own_bytes, own_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes);
  }

 private:
  template <typename Value> static void raise(std::atomic<Value>& peak, Value now) {
    Value seen = peak.load(std::memory_order_relaxed);
    while (now > seen && !peak.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {}
  }
};

struct Settings {
  Touch touch = Touch::kRecorded;
  bool strict = false;  // live memory as recorded: a lead of one epoch
  bool recorded_pace = false;
};

struct Workload {
  static constexpr std::uint32_t kEnded = 0xffffffff;
  static constexpr std::uint64_t kLongestSleep = 1'000'000;  // ns: what a lost wake-up costs

  sys::File file;
  const compiled::Header* header;
  const compiled::Thread* threads;
  Ledger* ledger;
  Settings settings;
  unsigned copy;
  std::uint64_t start_ns;
  std::int64_t flush_bytes;  // a thread tells the ledger when its live bytes changed by this much
  std::uint32_t lead;        // in epochs; 1 while more than `most_live` lives
  std::int64_t most_live;
  unsigned spins;  // before a waiting thread sleeps

  Slot* slots;
  std::atomic<std::uint32_t>* next;
  std::atomic<std::uint32_t> front{0};
  std::atomic<std::uint32_t> sleepers{0};  // on `front`
  std::atomic<std::uint64_t> started{0};   // threads; the rest wait for their first epoch
  // The epoch that the starter of threads waits for, and what it sleeps on.
  std::atomic<std::uint32_t> due_epoch{kEnded};
  std::atomic<std::uint32_t> due_bell{0};

  void set_next(std::uint64_t thread, std::uint32_t epoch) {
    next[thread].store(epoch);
    advance();
  }

  // Moves `front` to the least of `next`. Whoever changed `next` calls it, so the last of them sees all.
  void advance() {
    std::uint64_t first = ended_before_.load(std::memory_order_relaxed);
    while (first < header->threads && next[first].load() == kEnded) ++first;
    ended_before_.store(first, std::memory_order_relaxed);
    // The first thread not started stands for all behind it: the table is in the order of first epochs.
    const std::uint64_t last = std::min(header->threads, started.load() + 1);
    std::uint32_t least = kEnded;
    for (std::uint64_t i = first; i < last; ++i) least = std::min(least, next[i].load());
    std::uint32_t seen = front.load();
    while (seen < least && !front.compare_exchange_weak(seen, least)) {}
    if (seen >= least) return;
    if (sleepers.load() != 0) sys::wake(front);
    if (is_due(due_epoch.load())) ring();
  }

  bool may_work_in(std::uint32_t epoch) const {
    const std::uint64_t ahead = epoch - std::min(epoch, front.load());
    return ahead <= 1 || (ahead <= lead && ledger->live.load(std::memory_order_relaxed) <= most_live);
  }

  // Whether others need to know that a thread, which last told of `told`, has come to `epoch`.
  bool matters(std::uint32_t told, std::uint32_t epoch) const {
    if (epoch - told >= (lead + 3) / 4) return true;
    const std::uint32_t due = due_epoch.load(std::memory_order_relaxed);
    return due != kEnded && told + 1 < due && epoch + 1 >= due;
  }

  void await(std::uint32_t epoch) {
    for (unsigned i = 0; i < spins; ++i) {
      if (may_work_in(epoch)) return;
      sys::pause();
    }
    sleepers.fetch_add(1);
    for (std::uint32_t seen = front.load(); !may_work_in(epoch); seen = front.load())
      sys::wait(front, seen, kLongestSleep);
    sleepers.fetch_sub(1);
  }

  // Whether a thread that begins in that epoch is to be started: all others have come as far.
  bool is_due(std::uint32_t epoch) const { return std::uint64_t{front.load()} + 1 >= epoch; }

  // As `await`, for the starter: woken once, not at each epoch.
  void await_due(std::uint32_t epoch) {
    due_epoch.store(epoch);
    while (!is_due(epoch)) {
      const std::uint32_t seen = due_bell.load();
      if (!is_due(epoch)) sys::wait(due_bell, seen, kLongestSleep);
    }
    due_epoch.store(kEnded);
  }

  void ring() {
    due_bell.fetch_add(1);
    sys::wake(due_bell);
  }

 private:
  // A hint: threads below it have ended. Stale values only make a scan longer.
  std::atomic<std::uint64_t> ended_before_{0};
};

// Runs a thread of the workload to its end. `window` holds compiled::kChunkBytes.
void work(Workload& workload, std::uint64_t thread, std::uint8_t* window);

}  // namespace lab
