// Allocates and frees while a thread is being torn down.
#pragma once

#include <limits.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "support/pattern.h"
#include "support/scenario.h"

namespace contract {

// Each destructor frees what its key holds, allocates in many sizes, and sets its key anew as long as the C library
// starts another round: the later rounds run after an allocator with its own key has been told that the thread is gone.
struct Value {
  pthread_key_t key;
  int round;
  char* text;
};

// The number POSIX guarantees; some systems make many more.
constexpr int kRounds = std::min(PTHREAD_DESTRUCTOR_ITERATIONS, 4);

inline std::atomic<int> rounds_seen{0};

inline Value* make_value(pthread_key_t key, int round) {
  auto* value = static_cast<Value*>(malloc(sizeof(Value)));
  NEED(value);
  *value = {key, round, static_cast<char*>(malloc(3000))};
  NEED(value->text);
  fill(value->text, 3000, static_cast<std::uint64_t>(round));
  return value;
}

inline void use_heap() {
  void* blocks[24];
  for (std::size_t at = 0; at < 24; ++at) {
    blocks[at] = malloc(at * at * at + 1);
    NEED(blocks[at]);
    fill(blocks[at], at * at * at + 1, at);
  }
  for (std::size_t at = 0; at < 24; ++at) {
    NEED(intact(blocks[at], at * at * at + 1, at));
    blocks[at] = realloc(blocks[at], at * at * 60 + 1);
    NEED(blocks[at]);
    free(blocks[at]);
  }
}

inline void destroy_value(void* held) {
  auto* value = static_cast<Value*>(held);
  NEED(intact(value->text, 3000, static_cast<std::uint64_t>(value->round)));
  ++rounds_seen;
  use_heap();
  const pthread_key_t key = value->key;
  const int round = value->round + 1;
  free(value->text);
  free(value);
  if (round < kRounds) pthread_setspecific(key, make_value(key, round));
}

}  // namespace contract
