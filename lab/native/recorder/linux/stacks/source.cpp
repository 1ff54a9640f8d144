// What is known, rules and stacks, is found without a lock and without a call of the system. What is new is learned
// under one lock, with signals blocked, and never by asking the loader: a thread may stand anywhere within it.

#include "linux/stacks/source.h"

#include <bit>

#include "linux/stacks/sampler.h"
#include "linux/stacks/walk.h"
#include "stream/system.h"

extern "C" void* __libc_stack_end;

namespace recorder {
namespace {

// ---- rules by place in the code ---------------------------------------------------------------

// Two words that are written one after the other; a reader who meets a half finds that they do not fit.
class Rules {
 public:
  bool find(uint64_t key, Rule& rule) const {
    for (const Cell& cell : cells_[group(key)]) {
      const uint64_t bits = cell.rule.load(std::memory_order_relaxed);
      if ((cell.check.load(std::memory_order_relaxed) ^ bits) != key) continue;
      rule = std::bit_cast<Rule>(bits);
      return true;
    }
    return false;
  }

  // Locked.
  void put(uint64_t key, Rule rule) {
    Cell& cell = cells_[group(key)][turn_++ % kWays];
    const auto bits = std::bit_cast<uint64_t>(rule);
    cell.rule.store(bits, std::memory_order_relaxed);
    cell.check.store(key ^ bits, std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned kGroupBits = 15, kWays = 4;
  struct Cell {
    std::atomic<uint64_t> check, rule;
  };

  static size_t group(uint64_t key) { return (key * 0x9e3779b97f4a7c15) >> (64 - kGroupBits); }

  Cell cells_[1 << kGroupBits][kWays];
  unsigned turn_;
};

// In memory that a fork wipes, for the child's trace knows nothing of all this.
struct Known {
  std::atomic<bool> locked;
  std::atomic<uint32_t> unloads;  // that were heeded
  std::atomic<uint32_t> epoch;    // rules of an earlier one may be of code that is gone
  Rules rules;
  Modules modules;
  Tree tree;
};

constinit Known* g_known = nullptr;
constinit std::atomic<uint32_t> g_unloads = 0;

class Locked {
 public:
  Locked() {
    while (g_known->locked.exchange(true, std::memory_order_acquire)) system::yield();
  }
  ~Locked() { g_known->locked.store(false, std::memory_order_release); }

 private:
  system::Quiet quiet_;  // taken first and given back last
};

uint64_t key_of(uintptr_t pc) {
  return pc | uint64_t{g_known->epoch.load(std::memory_order_relaxed) & 0xffff} << Frame::kAddressBits;
}

Rule nowhere() {
  Rule rule{};
  rule.kind = Rule::kNowhere;
  return rule;
}

Rule rule_in(uint32_t module, uintptr_t pc) {
  if (module == Modules::kMost) return nowhere();
  Rule rule = rule_from_tables(g_known->modules[module].tables, pc);
  rule.module = static_cast<uint16_t>(module);
  return rule;
}

void refresh(Stream& stream) {
  if (g_known->modules.refresh(stream)) ++g_known->epoch;
}

Rule learn(Stream& stream, uintptr_t pc, bool trusted) {
  Locked locked;
  uint32_t module = g_known->modules.find(pc);
  if (module == Modules::kMost && trusted) {
    refresh(stream);
    module = g_known->modules.find(pc);
  }
  const Rule rule = rule_in(module, pc);
  if (trusted || rule.kind != Rule::kNowhere) g_known->rules.put(key_of(pc), rule);
  return rule;
}

Rule find_rule(Stream& stream, uintptr_t pc, bool trusted) {
  constexpr uintptr_t kFirstAddress = 4096, kLastAddress = uintptr_t{1} << (Frame::kAddressBits - 1);
  Rule rule = nowhere();
  if (pc < kFirstAddress || pc >= kLastAddress) return rule;
  if (!g_known->rules.find(key_of(pc), rule)) rule = learn(stream, pc, trusted);
  return rule;
}

// ---- the thread's stack -----------------------------------------------------------------------

struct ThreadStack {
  StackRange range;
  uint32_t outside;  // how often the stack pointer was elsewhere
};
constinit thread_local ThreadStack t_stack{};

uintptr_t thread_pointer() {
  uintptr_t at;
  asm("mov %%fs:0, %0" : "=r"(at));
  return at;
}

// Of a mapping, what lies below the thread's own data, or below where the program found its stack to begin: it stays
// while the thread runs. Other stacks, those of signals and of coroutines, may be gone at any time.
StackRange learn_range(uintptr_t sp) {
  Locked locked;
  Mapping mapping;
  if (!g_known->modules.mapping_of(sp, mapping)) return {};
  for (const uintptr_t end : {thread_pointer(), reinterpret_cast<uintptr_t>(__libc_stack_end)})
    if (sp < end && end < mapping.end) return t_stack.range = {mapping.start, end};
  return {};
}

// The main thread's stack grows, so it is asked for again, ever more rarely.
StackRange stack_range(uintptr_t sp) {
  ThreadStack& stack = t_stack;
  if (sp >= stack.range.low && sp < stack.range.high) return stack.range;
  return std::has_single_bit(++stack.outside) ? learn_range(sp) : StackRange{};
}

// ---- what was chosen --------------------------------------------------------------------------

struct Chosen {
  uintptr_t block;
  uint32_t stack;
};
constinit thread_local Chosen t_chosen{};

uint32_t take(const trace::Event& event) {
  Chosen& chosen = t_chosen;
  if (chosen.block == 0 || chosen.block != event.address || !trace::allocates(event.kind)) return 0;
  chosen.block = 0;
  return chosen.stack;
}

void heed_unloads(Stream& stream) {
  const uint32_t unloads = g_unloads.load(std::memory_order_acquire);
  if (g_known->unloads.load(std::memory_order_relaxed) == unloads) return;
  Locked locked;
  refresh(stream);
  g_known->unloads = unloads;
}

[[gnu::noinline]] uint32_t current_stack(Stream& stream) {
  heed_unloads(stream);
  Registers here;
  asm volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2" : "=&r"(here.pc), "=&r"(here.sp), "=&r"(here.fp));
  Frame frames[kMostFrames];
  const uint32_t count = walk(here, stack_range(here.sp), find_rule, stream, frames);
  if (const uint32_t known = g_known->tree.find(frames, count)) return known;
  Locked locked;
  return g_known->tree.add(frames, count, g_known->modules, stream);
}

}  // namespace

StackSource begin_stacks(uint32_t every_bytes) {
  if (!g_known) g_known = static_cast<Known*>(system::memory_of_this_process(sizeof(Known)));
  if (!g_known) return {};
  set_sampling(every_bytes);
  return {take, every_bytes};
}

// In a handler within an event nothing may be written.
void note_stack(const void* block) {
  Stream* stream = stream_for_notes();
  const uint32_t stack = stream && g_known ? current_stack(*stream) : trace::kEmptyStack;
  t_chosen = {reinterpret_cast<uintptr_t>(block), stack};
  if (stream && stream->room) hold_up(*stream);
}

void note_unload() { g_unloads.fetch_add(1, std::memory_order_release); }

}  // namespace recorder
