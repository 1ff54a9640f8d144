// The things programs do that an allocator has to survive, as a list to choose from: the calling thread does each once,
// checks what it used, and leaves nothing behind.
#pragma once

#include <pthread.h>

#include "held.h"

namespace chaos {

struct Disturbance {
  const char* name;
  void (*run)(Random& random);
};

extern const Disturbance kDisturbances[];
extern const std::size_t kDisturbanceCount;

// The disturbances of a run: a choice of about half of them. Some are mutually exclusive.
class Mix {
 public:
  Mix(Random& random, bool with_limits);
  void run_one(Random& random) const;
  void print() const;

 private:
  const Disturbance* chosen_[32] = {};
  std::size_t count_ = 0;
};

// Blocks that pass from thread to thread, so that each frees what others allocated.
void pass_on(Random& random);
void drop_passed();

// Called at the start: programs change their environment beside other threads.
char** environment_at_first();

// For a thread that signals may interrupt with forks: it asks now and then whether it is in a child of one.
void offer_to_interrupt(pthread_t thread);
bool is_interrupted_child();

// All threads that ask pause while one of them wants it.
void rest_if_wanted();

}  // namespace chaos
