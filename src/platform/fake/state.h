// State shared by the parts of the fake.
#pragma once

#include <pthread.h>

#include "platform/fake/fake.h"

namespace rh::fake {

// Counts a call. True when it is to fail.
bool fails(Call kind);

class Guard {
 public:
  explicit Guard(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~Guard() { pthread_mutex_unlock(&mutex_); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace rh::fake
