#include "linux/stacks/sampler.h"

#include "base/chance.h"
#include "stream/clock.h"
#include "stream/system.h"
#include "thread_slot.h"

namespace recorder {

constinit thread_local Sampler t_sampler{};

namespace {

constinit uint32_t g_every = 0;

void begin(Sampler& sampler) {
  sampler.generation = thread_slot().generation;
  sampler.random = system::time_of_day_nanoseconds() ^ system::process_id() << 40 ^
                   reinterpret_cast<uintptr_t>(&sampler) << 20 ^ ticks_now();
  sampler.left = rh::chance::draw(sampler.random, g_every);
}

}  // namespace

void set_sampling(uint32_t every_bytes) { g_every = every_bytes; }

bool sample_slowly(size_t size) {
  Sampler& sampler = t_sampler;
  if (g_every == 0) {
    sampler.left = 0;
    return true;
  }
  if (sampler.generation != thread_slot().generation || sampler.random == 0) {
    begin(sampler);
    return sample(size);
  }
  sampler.left = rh::chance::draw(sampler.random, g_every);
  return true;
}

}  // namespace recorder
