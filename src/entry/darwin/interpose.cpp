// The C library's names, for programs that the library is put under by DYLD_INSERT_LIBRARIES or that link it: dyld
// leads every image's calls of the second of each pair to the first, but for this library's own. Without them all would
// come here too, by the zone, with some calls more on the way; so does what is not named here (malloc_size, strdup,
// malloc_zone_malloc, malloc_type_malloc, operator new).
#include <stdlib.h>

#include "entry/darwin/zone.h"
#include "entry/posix/aligned.h"
#include "entry/rules.h"

namespace rh {

namespace {

// Before our zone stands first the system would not know our blocks.
bool is_ready() { return RH_LIKELY(zone::stands_first()); }

void* our_malloc(size_t size) { return is_ready() ? rules::allocate(size) : ::malloc(size); }

void* our_calloc(size_t count, size_t size) {
  return is_ready() ? rules::allocate_zeroed(count, size) : ::calloc(count, size);
}

void* our_realloc(void* block, size_t size) {
  return is_ready() ? rules::reallocate(block, zone::size_for_realloc(size)) : ::realloc(block, size);
}

// BSD's: frees the block where it cannot be made longer.
void* our_reallocf(void* block, size_t size) {
  if (!is_ready()) return ::reallocf(block, size);
  void* longer = our_realloc(block, size);
  if (longer == nullptr) rules::free(block);
  return longer;
}

void* our_valloc(size_t size) {
  return is_ready() ? rules::allocate_aligned(platform::page_size(), size) : ::valloc(size);
}

void* our_aligned_alloc(size_t alignment, size_t size) {
  if (!is_ready()) return ::aligned_alloc(alignment, size);
  return aligned::aligned_alloc(alignment, size, rules::allocate_aligned);
}

int our_posix_memalign(void** block, size_t alignment, size_t size) {
  if (!is_ready()) return ::posix_memalign(block, alignment, size);
  return aligned::posix_memalign(block, alignment, size, rules::allocate_aligned);
}

void our_free(void* block) { is_ready() ? rules::free(block) : ::free(block); }

struct Pair {
  const void *ours, *theirs;
};

#define RH_PAIR(name) {reinterpret_cast<const void*>(our_##name), reinterpret_cast<const void*>(::name)}

[[gnu::used, gnu::section("__DATA,__interpose")]] const Pair g_pairs[] = {
    RH_PAIR(malloc), RH_PAIR(calloc),        RH_PAIR(realloc),        RH_PAIR(reallocf),
    RH_PAIR(valloc), RH_PAIR(aligned_alloc), RH_PAIR(posix_memalign), RH_PAIR(free),
};

}  // namespace

}  // namespace rh
