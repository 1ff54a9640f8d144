// Where this library is malloc, the next in line is what the loader finds behind it, or glibc's own under the names
// it keeps for that.
#include <errno.h>

#include "base/bits.h"
#include "entry/copies.h"
#include "entry/foreign.h"
#include "entry/lifetime.h"
#include "entry/linux/next.h"
#include "entry/linux/pages.h"
#include "entry/linux/privileges.h"
#include "entry/linux/waits.h"
#include "entry/rules.h"
#include "platform/platform.h"
#include "platform/report.h"

// Weak: absent from other C libraries, and from statically linked programs.
extern "C" [[gnu::weak]] void __libc_free(void* block);
extern "C" [[gnu::weak]] void* __libc_realloc(void* block, size_t size);

// Weak: ThreadSanitizer's, as GCC links it, behind us. Its names are known before the loader can be asked for any.
extern "C" {
[[gnu::weak]] void* __interceptor_memalign(size_t alignment, size_t size);
[[gnu::weak]] void __interceptor_free(void* block);
[[gnu::weak]] void* __interceptor_realloc(void* block, size_t size);
[[gnu::weak]] size_t __interceptor_malloc_usable_size(void* block);
}

namespace rh {

namespace {

constinit NextFunction<void(void*)> g_free{"free"};
constinit NextFunction<void*(void*, size_t)> g_realloc{"realloc"};
constinit NextFunction<size_t(void*)> g_usable_size{"malloc_usable_size"};

template <typename Function>
Function* next_or(const NextFunction<Function>& next, Function* of_sanitizer, Function* otherwise = nullptr) {
  Function* function = next.known();
  if (function != nullptr) return function;
  return platform::is_under_thread_sanitizer() && of_sanitizer != nullptr ? of_sanitizer : otherwise;
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
  if (copies::free(block)) return;
  auto* next = next_or(g_free, __interceptor_free, __libc_free);
  if (next == nullptr) fail_unknown("free", block);
  next(block);
}

void* reallocate_next(void* block, size_t size) {
  if (size_t present = 0; copies::bytes_from(block, &present))
    return rules::take_over(block, present, kBlockAlign, size);
  auto* next = next_or(g_realloc, __interceptor_realloc, __libc_realloc);
  if (next == nullptr) fail_unknown("realloc", block);
  return next(block, size);
}

size_t usable_size_next(void* block) {
  if (size_t present = 0; copies::bytes_from(block, &present)) return present;
  auto* next = next_or(g_usable_size, __interceptor_malloc_usable_size);
  if (next == nullptr) fail_unknown("malloc_usable_size", block);
  return next(block);
}

// Of blocks that another malloc makes it could not tell who had used them before, and would tell of races that are
// none.
Foreign::Allocate* instead() { return platform::is_under_thread_sanitizer() ? __interceptor_memalign : nullptr; }

}  // namespace

constinit const Foreign g_foreign = {
    .resolve = resolve,
    .free = free_next,
    .reallocate = reallocate_next,
    .usable_size = usable_size_next,
    .instead = instead,
    .set_errno = [](int error) { errno = error; },
};

}  // namespace rh
