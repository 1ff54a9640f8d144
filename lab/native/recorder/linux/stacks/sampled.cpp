// The allocator's functions, each followed by the choice of whether its block gets a stack.

#include "linux/stacks/sampler.h"
#include "linux/stacks/source.h"

namespace recorder {
namespace {

void* seen(void* block, size_t size) {
  if (block && sample(size)) [[unlikely]]
    note_stack(block);
  return block;
}

void* sampled_malloc(size_t size) { return seen(g_found.malloc(size), size); }

void* sampled_calloc(size_t count, size_t size) { return seen(g_found.calloc(count, size), count * size); }

void* sampled_realloc(void* block, size_t size) { return seen(g_found.realloc(block, size), size); }

void* sampled_aligned_alloc(size_t alignment, size_t size) {
  return seen(g_found.aligned_alloc(alignment, size), size);
}

int sampled_posix_memalign(void** to, size_t alignment, size_t size) {
  const int error = g_found.posix_memalign(to, alignment, size);
  if (!error) seen(*to, size);
  return error;
}

void* sampled_memalign(size_t alignment, size_t size) { return seen(g_found.memalign(alignment, size), size); }

void* sampled_valloc(size_t size) { return seen(g_found.valloc(size), size); }

void* sampled_pvalloc(size_t size) { return seen(g_found.pvalloc(size), size); }

}  // namespace

bool can_follow_frames() { return true; }

Next sampled(const Next& found) {
  return {sampled_malloc,         sampled_calloc,   sampled_realloc, found.free,      sampled_aligned_alloc,
          sampled_posix_memalign, sampled_memalign, sampled_valloc,  sampled_pvalloc, found.usable_size};
}

}  // namespace recorder
