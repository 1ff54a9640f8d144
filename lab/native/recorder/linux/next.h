// The allocator behind the recorder.
#pragma once

#include <cstddef>
#include <cstdint>

namespace recorder {

struct Next {
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void (*free)(void*);
  void* (*aligned_alloc)(size_t, size_t);
  int (*posix_memalign)(void**, size_t, size_t);
  void* (*memalign)(size_t, size_t);
  void* (*valloc)(size_t);
  void* (*pvalloc)(size_t);
  size_t (*usable_size)(void*);  // null when it does not say
};

// Until the first call has found the others, each of these does that first.
extern constinit Next g_found __attribute__((visibility("hidden")));

// What calls are passed on to: g_found, or what samples stacks on the way there.
extern constinit Next g_next __attribute__((visibility("hidden")));

// Once it is known whether stacks are asked for.
void choose_next();

// While they are being found, memory comes from here; it is never given back.
inline constexpr size_t kEarlyBytes = 32768;
extern constinit unsigned char g_early[kEarlyBytes] __attribute__((visibility("hidden")));

inline bool is_early(const void* block) {
  return reinterpret_cast<uintptr_t>(block) - reinterpret_cast<uintptr_t>(g_early) < kEarlyBytes;
}
size_t early_size(const void* block);

// The C library's; it is found when it is first called.
int next_dlclose(void* handle);

}  // namespace recorder
