#include "linux/next.h"

#include "linux/settings.h"
#include "linux/stacks/source.h"
#include "stream/system.h"

#include <dlfcn.h>
#include <string.h>

#include <atomic>
#include <cstdint>

namespace recorder {

alignas(64) constinit unsigned char g_early[kEarlyBytes];

namespace {

// ---- memory for dlsym itself ------------------------------------------------------------------

constinit std::atomic<size_t> g_early_used = 0;

// Each block has its size before it. Zeroed, since it is used once.
void* early_memory(size_t size, size_t alignment) {
  if (size > kEarlyBytes || alignment > 4096) return nullptr;
  size_t whole = ((size + 15) & ~size_t{15}) + 16 + alignment;
  size_t start = g_early_used.fetch_add(whole);
  if (start + whole > kEarlyBytes) return nullptr;
  auto at = (reinterpret_cast<uintptr_t>(g_early) + start + 16 + alignment - 1) & ~(alignment - 1);
  memcpy(reinterpret_cast<void*>(at - sizeof size), &size, sizeof size);
  return reinterpret_cast<void*>(at);
}

constinit std::atomic<bool> g_finding = false;

template <class Function> void find(Function*& function, const char* name) {
  if (void* found = dlsym(RTLD_NEXT, name)) function = reinterpret_cast<Function*>(found);
}

const void* object_of(void* function) {
  Dl_info info;
  return dladdr(function, &info) ? info.dli_fbase : nullptr;
}

// False when it is being done: then the caller is dlsym.
bool find_next() {
  if (g_finding.exchange(true)) return false;
  Next found = g_found;
  find(found.calloc, "calloc");
  find(found.realloc, "realloc");
  find(found.free, "free");
  find(found.aligned_alloc, "aligned_alloc");
  find(found.posix_memalign, "posix_memalign");
  find(found.memalign, "memalign");
  find(found.valloc, "valloc");
  find(found.pvalloc, "pvalloc");
  find(found.usable_size, "malloc_usable_size");
  find(found.malloc, "malloc");
  // Another allocator's answer about a block would be wrong.
  if (found.usable_size &&
      object_of(reinterpret_cast<void*>(found.usable_size)) != object_of(reinterpret_cast<void*>(found.free)))
    found.usable_size = nullptr;
  g_found = found;
  choose_next();
  g_finding = false;
  return true;
}

void* first_malloc(size_t size) { return find_next() ? g_next.malloc(size) : early_memory(size, 16); }

void* first_calloc(size_t count, size_t size) {
  return find_next() ? g_next.calloc(count, size) : early_memory(count * size, 16);
}

void* first_realloc(void* block, size_t size) { return find_next() ? g_next.realloc(block, size) : nullptr; }

void first_free(void* block) {
  if (find_next()) g_next.free(block);
}

void* first_aligned_alloc(size_t alignment, size_t size) {
  return find_next() ? g_next.aligned_alloc(alignment, size) : early_memory(size, alignment);
}

int first_posix_memalign(void** to, size_t alignment, size_t size) {
  if (find_next()) return g_next.posix_memalign(to, alignment, size);
  *to = early_memory(size, alignment);
  return *to ? 0 : 12;
}

void* first_memalign(size_t alignment, size_t size) {
  return find_next() ? g_next.memalign(alignment, size) : early_memory(size, alignment);
}

void* first_valloc(size_t size) { return find_next() ? g_next.valloc(size) : early_memory(size, 4096); }

void* first_pvalloc(size_t size) {
  return find_next() ? g_next.pvalloc(size) : early_memory((size + 4095) & ~size_t{4095}, 4096);
}

constexpr Next kFirst = {first_malloc,         first_calloc,   first_realloc, first_free,    first_aligned_alloc,
                         first_posix_memalign, first_memalign, first_valloc,  first_pvalloc, nullptr};

}  // namespace

constinit Next g_found = kFirst;
constinit Next g_next = kFirst;

void choose_next() {
  const bool found = g_found.malloc != kFirst.malloc;
  g_next = found && system::ready() && settings().stacks ? sampled(g_found) : g_found;
}

int next_dlclose(void* handle) {
  static constinit std::atomic<int (*)(void*)> found = nullptr;
  if (!found) {
    int (*function)(void*) = nullptr;
    find(function, "dlclose");
    found = function;
  }
  return found.load()(handle);
}

size_t early_size(const void* block) {
  size_t size;
  memcpy(&size, static_cast<const unsigned char*>(block) - sizeof size, sizeof size);
  return size;
}

}  // namespace recorder
