#include "turns.h"

#include <linux/futex.h>
#include <sched.h>

#include <atomic>

#include "system_call.h"

namespace coherence {

constinit Turns g_turns;

namespace {

using Word = std::atomic_ref<uint32_t>;

void wait_while(uint32_t& word, uint32_t value) {
  while (Word(word).load(std::memory_order_acquire) == value)
    system_call(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAIT_PRIVATE, value);
}

void wake(uint32_t& word) { system_call(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAKE_PRIVATE, 1); }

// All on one processor: as one runs at a time nothing is lost, and to wake a thread takes a third of the time.
void stay_here() {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(static_cast<unsigned>(sched_getcpu()), &here);
  system_call(SYS_sched_setaffinity, 0, sizeof(here), reinterpret_cast<long>(&here));
}

}  // namespace

void Turns::expect(unsigned cores, uint64_t seed) {
  stay_here();
  expected_ = cores;
  for (unsigned core = 0; core < cores; ++core) active_[core] = core;
  active_count_ = cores;
  random_ = seed * 0x9E3779B97F4A7C15u | 1;
}

// The first turn is core 0's whoever comes last, or the order of threads' births would be part of the result.
void Turns::enter(unsigned core) {
  if (Word(entered_).fetch_add(1) + 1 == expected_) give(0);
  wait_for(core);
}

void Turns::wait_for(unsigned core) {
  wait_while(turn_[core].is_on, 0);
  turn_[core].is_on = 0;
}

void Turns::give(unsigned core) {
  current_ = core;
  Word(turn_[core].is_on).store(1, std::memory_order_release);
  wake(turn_[core].is_on);
}

void Turns::hand_over() {
  unsigned self = current_;
  unsigned next = draw();
  if (next == self) return;
  give(next);
  wait_for(self);
}

void Turns::hand_on() { give(current_); }

void Turns::leave() {
  remove_current();
  if (active_count_ != 0) give(draw());
}

bool Turns::gather() {
  unsigned self = current_;
  gathered_[gathered_count_++] = self;
  remove_current();
  if (active_count_ != 0) {
    give(draw());
    wait_for(self);
    return false;
  }
  for (; active_count_ < gathered_count_; ++active_count_) active_[active_count_] = gathered_[active_count_];
  gathered_count_ = 0;
  return true;
}

void Turns::remove_current() {
  for (unsigned i = 0; i < active_count_; ++i) {
    if (active_[i] != current_) continue;
    active_[i] = active_[--active_count_];
    return;
  }
}

unsigned Turns::draw() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return active_[(random_ >> 20) % active_count_];
}

}  // namespace coherence
