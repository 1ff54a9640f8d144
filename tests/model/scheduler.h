// A scheduler that tries out orders: the threads of a small program are fibers, and at each schedule point of the core
// (base/schedule.h) it is decided which of them goes on. All orders with at most so many preemptions are run, each in a
// process of its own that begins from the same state. (The idea of bounding preemptions is that of CHESS: M. Musuvathi
// et al., "Finding and Reproducing Heisenbugs in Concurrent Programs", OSDI 2008.)
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rh::model {

struct Program {
  void (*prepare)();                // before there is a choice
  std::vector<void (*)()> threads;  // each ends, as a thread does, when its function returns
  void (*check)();                  // when all have ended
};

struct Explored {
  size_t schedules = 0;
  std::string failure;  // of the first schedule that failed, with its choices; empty when none did
};

// Runs every schedule with up to `preemptions` of them.
Explored explore(const Program& program, unsigned preemptions);

// In a program: what it was told to be is not so. Ends the process.
[[noreturn]] void fail(const char* what);

#define MODEL_NEED(condition) \
  if (!(condition)) ::rh::model::fail(#condition)

// In prepare: what a thread of the program has done before.
void play(size_t number, void (*body)());

}  // namespace rh::model
