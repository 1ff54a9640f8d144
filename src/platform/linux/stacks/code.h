// What is known of the process's code: its modules, and for each place that was met the way to the caller. It is found
// without a lock and without a call of the system; what is new is learned under one lock, and never by asking the
// loader: a thread may stand anywhere within it.
#pragma once

#include <atomic>
#include <bit>

#include "platform/linux/stacks/modules.h"
#include "platform/linux/stacks/walk.h"

namespace rh::stacks {

inline Rule nowhere() {
  Rule rule{};
  rule.kind = Rule::kNowhere;
  return rule;
}

// Two words that are written one after the other; a reader who meets a half finds that they do not fit.
class Rules {
 public:
  RH_INLINE bool find(uint64_t key, Rule& rule) const {
    for (const Cell& cell : cells_[group(key)]) {
      const uint64_t bits = cell.rule.load(std::memory_order_relaxed);
      if ((cell.check.load(std::memory_order_relaxed) ^ bits) != key) continue;
      rule = std::bit_cast<Rule>(bits);
      return true;
    }
    return false;
  }

  // Locked.
  void put(uint64_t key, Rule rule);

 private:
  static constexpr unsigned kGroupBits = 15, kWays = 4;
  struct Cell {
    std::atomic<uint64_t> check, rule;
  };

  static size_t group(uint64_t key) { return (key * 0x9e3779b97f4a7c15) >> (64 - kGroupBits); }

  Cell cells_[1 << kGroupBits][kWays];
  unsigned turn_;
};

// Zeroed, it knows nothing. But for find(), its user calls everything under a lock of his own.
class Code {
 public:
  // What is there to know at once: also of what cannot be code.
  RH_INLINE bool find(uintptr_t pc, Rule& rule) const {
    constexpr uintptr_t kFirstAddress = 4096, kLastAddress = uintptr_t{1} << (Frame::kAddressBits - 1);
    if (RH_UNLIKELY(pc - kFirstAddress >= kLastAddress - kFirstAddress)) return rule = nowhere(), true;
    return rules_.find(key_of(pc), rule);
  }

  // For what is not there; `trusted` as a walk says.
  Rule learn(uintptr_t pc, bool trusted, const NoteModule& note);

  // Reads anew what is mapped; forgets the rules when something is gone.
  void refresh(const NoteModule& note);

  Modules& modules() { return modules_; }
  const Modules& modules() const { return modules_; }

 private:
  uint64_t key_of(uintptr_t pc) const {
    return pc | uint64_t{epoch_.load(std::memory_order_relaxed) & 0xffff} << Frame::kAddressBits;
  }

  std::atomic<uint32_t> epoch_;  // rules of an earlier one may be of code that is gone
  Rules rules_;
  Modules modules_;
};

// What is known of the calling thread's stack: of each thread one, zero at first.
class ThreadStack {
 public:
  // False: it is to be asked for by learn. The main thread's stack grows, so that is so again and again, ever more
  // rarely.
  bool find(uintptr_t sp, StackRange& range);

  // Under the lock of the modules.
  StackRange learn(uintptr_t sp, Modules& modules);

 private:
  StackRange range_;
  uint32_t outside_;  // how often the stack pointer was elsewhere
};

}  // namespace rh::stacks
