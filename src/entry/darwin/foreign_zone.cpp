// Where this library is malloc, the next in line is the zone that made the block.
#include <errno.h>

#include "base/bits.h"
#include "entry/darwin/zone.h"
#include "entry/foreign.h"
#include "entry/lifetime.h"
#include "platform/report.h"

namespace rh {

namespace {

malloc_zone_t* known_maker(const void* block, const char* function) {
  malloc_zone_t* maker = zone::maker_of(block);
  if (maker != nullptr) return maker;
  Text message;
  message << function << " of unknown pointer ";
  message.hex(address_of(block)) << ": no allocator made it";
  fatal(message);
}

void free_by_maker(void* block) {
  malloc_zone_t* maker = known_maker(block, "free");
  maker->free(maker, block);
}

void* reallocate_by_maker(void* block, size_t size) {
  malloc_zone_t* maker = known_maker(block, "realloc");
  return maker->realloc(maker, block, size);
}

}  // namespace

constinit const Foreign g_foreign = {
    .resolve =
        [] {
          lifetime::anchor();
          zone::stand_first();
        },
    .free = free_by_maker,
    .reallocate = reallocate_by_maker,
    .usable_size =
        [](void* block) {
          malloc_zone_t* maker = zone::maker_of(block);
          return maker != nullptr ? maker->size(maker, block) : 0;
        },
    .set_errno = [](int error) { errno = error; },
};

}  // namespace rh
