// Whose turn it is. Exactly one of the cores runs at a time, and only it touches what is here, but for the word that
// each waits on.
#pragma once

#include "coherence.h"

namespace coherence {

class Turns {
 public:
  void expect(unsigned cores, uint64_t seed);
  void enter(unsigned core);
  void leave();
  void hand_over();
  // True for the last to come, who goes on first.
  bool gather();
  void hand_on();
  void wait_for(unsigned core);

 private:
  unsigned draw();
  void give(unsigned core);
  void remove_current();

  // Those who take part in the draw; the others wait at gather(), or have left.
  unsigned active_[kMostCores] = {};
  unsigned active_count_ = 0;
  unsigned current_ = 0;
  unsigned gathered_[kMostCores] = {};
  unsigned gathered_count_ = 0;
  uint64_t random_ = 0;

  uint32_t expected_ = 0;
  uint32_t entered_ = 0;
  struct alignas(64) {
    uint32_t is_on;
  } turn_[kMostCores] = {};
};

extern constinit Turns g_turns;

}  // namespace coherence
