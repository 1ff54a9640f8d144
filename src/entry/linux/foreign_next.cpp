// Where this library is malloc, the next in line is what the loader finds behind it, or glibc's own under the names
// it keeps for that.
#include <dlfcn.h>
#include <errno.h>

#include <atomic>

#include "base/bits.h"
#include "entry/foreign.h"
#include "entry/linux/pages.h"
#include "entry/linux/privileges.h"
#include "entry/linux/waits.h"
#include "platform/report.h"

// Weak: absent from other C libraries, and from statically linked programs.
extern "C" [[gnu::weak]] void __libc_free(void* block);
extern "C" [[gnu::weak]] void* __libc_realloc(void* block, size_t size);
extern "C" [[gnu::weak]] void* dlsym(void* handle, const char* name) noexcept;

namespace rh::foreign {

namespace {

struct Next {
  std::atomic<void (*)(void*)> free{nullptr};
  std::atomic<void* (*)(void*, size_t)> reallocate{nullptr};
  std::atomic<size_t (*)(void*)> usable_size{nullptr};
};

constinit Next g_next;

template <typename Function>
void find(std::atomic<Function>* function, const char* name) {
  if (dlsym == nullptr) return;
  function->store(reinterpret_cast<Function>(dlsym(RTLD_NEXT, name)), std::memory_order_relaxed);
}

template <typename Function>
Function next_or(const std::atomic<Function>& found, Function otherwise) {
  Function function = found.load(std::memory_order_relaxed);
  return function != nullptr ? function : otherwise;
}

[[noreturn]] void fail_unknown(const char* function, const void* block) {
  Text message;
  message << function << " of unknown pointer ";
  message.hex(address_of(block)) << ": no allocator made it";
  fatal(message);
}

}  // namespace

void resolve() {
  find(&g_next.free, "free");
  find(&g_next.reallocate, "realloc");
  find(&g_next.usable_size, "malloc_usable_size");
  waits::resolve();
  privileges::stand_in();
  pages::stand_in();
}

void set_errno(int error) { errno = error; }

void free(void* block) {
  auto next = next_or(g_next.free, __libc_free);
  if (next == nullptr) fail_unknown("free", block);
  next(block);
}

void* reallocate(void* block, size_t size) {
  auto next = next_or(g_next.reallocate, __libc_realloc);
  if (next == nullptr) fail_unknown("realloc", block);
  return next(block, size);
}

size_t usable_size(const void* block) {
  auto next = next_or(g_next.usable_size, static_cast<size_t (*)(void*)>(nullptr));
  if (next == nullptr) fail_unknown("malloc_usable_size", block);
  return next(const_cast<void*>(block));
}

}  // namespace rh::foreign
