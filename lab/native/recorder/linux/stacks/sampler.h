// Which allocations get a stack: each byte allocated is chosen with the same chance, and the allocation that holds it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace recorder {

struct Sampler {
  int64_t left;  // bytes to the next chosen one
  uint64_t random;
  uint64_t generation;  // of the process: children must not repeat what their parent chose
};
extern constinit thread_local Sampler t_sampler __attribute__((tls_model("initial-exec"), visibility("hidden")));

// `every_bytes` lie between two chosen ones on average; 0: each allocation is chosen. Before anything is asked.
void set_sampling(uint32_t every_bytes);

bool sample_slowly(size_t size);

// Of a block of `size` bytes: true with the probability 1 - exp(-size / every_bytes), whatever was chosen before.
inline bool sample(size_t size) {
  t_sampler.left -= static_cast<int64_t>(size == 0 ? 1 : size);
  return t_sampler.left <= 0 && sample_slowly(size);
}

}  // namespace recorder
