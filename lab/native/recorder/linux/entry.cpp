// The names that a program calls. Each passes the call on and tells of it; what the call returns is the next
// allocator's.

#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cstring>

#include "linux/next.h"
#include "linux/residence.h"
#include "linux/stacks/source.h"
#include "stream/recorder.h"
#include "stream/stream.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace recorder;
using trace::Kind;

namespace {

[[gnu::always_inline]] inline void* told(Kind kind, void* block, size_t size, size_t alignment = 0) {
  if (block) [[likely]]
    allocated(kind, block, size, alignment);
  else
    failed(kind, size);
  return block;
}

void* told_aligned(void* block, size_t size, size_t alignment) {
  return told(Kind::kAligned, block, size, std::bit_ceil(alignment));
}

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

__attribute__((noinline)) void free_large(void* block, uint64_t time) {
  size_t size = g_next.usable_size ? g_next.usable_size(block) : 0;
  int64_t kib = size >= trace::kMeasuredBytes ? resident_kib(block, size) : -1;
  if (kib < 0)
    freed(block, time);
  else
    freed_measured(block, time, static_cast<uint64_t>(kib));
  g_next.free(block);
}

// A block from before the next allocator was found stays where it is.
__attribute__((noinline)) void* move_early(void* block, size_t size) {
  void* moved = told(Kind::kMalloc, g_next.malloc(size), size);
  if (moved) std::memcpy(moved, block, size < early_size(block) ? size : early_size(block));
  return moved;
}

void* reallocate(void* block, size_t size) {
  if (!block) return told(Kind::kMalloc, g_next.realloc(nullptr, size), size);
  if (is_early(block)) [[unlikely]]
    return move_early(block, size);
  uint64_t begin = ticks_now();
  void* moved = g_next.realloc(block, size);
  if (moved)
    reallocated(begin, block, moved, size);
  else if (size == 0)
    freed(block, begin);
  else
    failed(Kind::kRealloc, size);
  return moved;
}

}  // namespace

EXPORT void* malloc(size_t size) { return told(Kind::kMalloc, g_next.malloc(size), size); }

EXPORT void* calloc(size_t count, size_t size) {
  size_t product;
  if (__builtin_mul_overflow(count, size, &product)) [[unlikely]]
    product = SIZE_MAX;
  return told(Kind::kCalloc, g_next.calloc(count, size), product);
}

EXPORT void free(void* block) {
  if (!block || is_early(block)) [[unlikely]]
    return;
  uint64_t time = ticks_now();
  if (may_be_large(reinterpret_cast<uintptr_t>(block))) [[unlikely]]
    return free_large(block, time);
  freed(block, time);
  g_next.free(block);
}

EXPORT void* realloc(void* block, size_t size) { return reallocate(block, size); }

EXPORT void* reallocarray(void* block, size_t count, size_t size) {
  size_t product;
  if (__builtin_mul_overflow(count, size, &product)) product = SIZE_MAX;  // the next one refuses it
  return reallocate(block, product);
}

EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  return told_aligned(g_next.aligned_alloc(alignment, size), size, alignment);
}

EXPORT void* memalign(size_t alignment, size_t size) {
  return told_aligned(g_next.memalign(alignment, size), size, alignment);
}

EXPORT int posix_memalign(void** to, size_t alignment, size_t size) {
  int error = g_next.posix_memalign(to, alignment, size);
  told_aligned(error ? nullptr : *to, size, alignment);
  return error;
}

EXPORT void* valloc(size_t size) { return told_aligned(g_next.valloc(size), size, page_bytes()); }

EXPORT void* pvalloc(size_t size) { return told_aligned(g_next.pvalloc(size), size, page_bytes()); }

// The library's place may be another one's soon.
EXPORT int dlclose(void* handle) noexcept {
  const int status = next_dlclose(handle);
  note_unload();
  return status;
}

// Without destructors: nobody else tells that the process ends here, as many shells do.
EXPORT [[gnu::noreturn]] void _exit(int status) {
  process_exits();
  for (;;) syscall(SYS_exit_group, status);
}

EXPORT [[gnu::noreturn]] void _Exit(int status) { _exit(status); }
