// Where this library is malloc, the next in line is what the loader finds behind it, or glibc's own under the names
// it keeps for that.
#include <errno.h>

#include "base/bits.h"
#include "entry/foreign.h"
#include "entry/lifetime.h"
#include "entry/linux/next.h"
#include "entry/linux/pages.h"
#include "entry/linux/privileges.h"
#include "entry/linux/waits.h"
#include "platform/platform.h"
#include "platform/report.h"

// Weak: absent from other C libraries, and from statically linked programs.
extern "C" [[gnu::weak]] void __libc_free(void* block);
extern "C" [[gnu::weak]] void* __libc_realloc(void* block, size_t size);

namespace rh {

namespace {

constinit NextFunction<void(void*)> g_free{"free"};
constinit NextFunction<void*(void*, size_t)> g_realloc{"realloc"};
constinit NextFunction<size_t(void*)> g_usable_size{"malloc_usable_size"};

template <typename Function> Function* next_or(const NextFunction<Function>& next, Function* otherwise) {
  Function* function = next.known();
  return function != nullptr ? function : otherwise;
}

[[noreturn]] void fail_unknown(const char* function, const void* block) {
  Text message;
  message << function << " of unknown pointer ";
  message.hex(address_of(block)) << ": no allocator made it";
  fatal(message);
}

void resolve() {
  lifetime::anchor();
  g_free.look_up();
  g_realloc.look_up();
  g_usable_size.look_up();
  platform::note_streams_allocate();
  waits::resolve();
  privileges::stand_in();
  credentials::stand_in();
  pages::stand_in();
}

void free_next(void* block) {
  auto* next = next_or(g_free, __libc_free);
  if (next == nullptr) fail_unknown("free", block);
  next(block);
}

void* reallocate_next(void* block, size_t size) {
  auto* next = next_or(g_realloc, __libc_realloc);
  if (next == nullptr) fail_unknown("realloc", block);
  return next(block, size);
}

size_t usable_size_next(void* block) {
  auto* next = g_usable_size.known();
  if (next == nullptr) fail_unknown("malloc_usable_size", block);
  return next(block);
}

}  // namespace

constinit const Foreign g_foreign = {
    .resolve = resolve,
    .free = free_next,
    .reallocate = reallocate_next,
    .usable_size = usable_size_next,
    .set_errno = [](int error) { errno = error; },
};

}  // namespace rh
