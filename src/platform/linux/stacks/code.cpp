#include "platform/linux/stacks/code.h"

#include "base/bits.h"
#include "platform/linux/thread_pointer.h"

// The loader's; not every C library has it.
extern "C" [[gnu::weak]] void* __libc_stack_end;

namespace rh::stacks {

void Rules::put(uint64_t key, Rule rule) {
  Cell& cell = cells_[group(key)][turn_++ % kWays];
  const auto bits = std::bit_cast<uint64_t>(rule);
  cell.rule.store(bits, std::memory_order_relaxed);
  cell.check.store(key ^ bits, std::memory_order_relaxed);
}

Rule Code::learn(uintptr_t pc, bool trusted, const NoteModule& note) {
  uint32_t module = modules_.find(pc);
  if (module == Modules::kMost && trusted) {
    refresh(note);
    module = modules_.find(pc);
  }
  Rule rule = nowhere();
  if (module != Modules::kMost) {
    rule = rule_from_tables(modules_[module].tables, pc);
    rule.module = static_cast<uint16_t>(module);
  }
  if (trusted || rule.kind != Rule::kNowhere) rules_.put(key_of(pc), rule);
  return rule;
}

void Code::refresh(const NoteModule& note) {
  if (modules_.refresh(note)) ++epoch_;
}

bool ThreadStack::find(uintptr_t sp, StackRange& range) {
  const bool within = sp >= range_.low && sp < range_.high;
  range = within ? range_ : StackRange{};
  return within || !is_power_of_two(++outside_);
}

// Of a mapping, what lies below the thread's own data, or below where the program found its stack to begin: it stays
// while the thread runs. Other stacks, those of signals and of coroutines, may be gone at any time.
StackRange ThreadStack::learn(uintptr_t sp, Modules& modules) {
  Mapping mapping;
  if (!modules.mapping_of(sp, mapping)) return {};
  const uintptr_t stack_end = &__libc_stack_end ? address_of(__libc_stack_end) : 0;
  const uintptr_t ends[] = {platform::thread_pointer(), stack_end};
  for (const uintptr_t end : ends)
    if (sp < end && end < mapping.end) return range_ = {mapping.start, end};
  return {};
}

}  // namespace rh::stacks
