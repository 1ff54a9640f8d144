// The positive control of the contract suite: a malloc that passes everything on to the next one, but breaks the one
// rule that CONTRACT_BREAK names. Preloaded under a test of that rule, it must make the test fail (control.py, and the
// table in CMakeLists.txt).
#include <malloc.h>
#include <pthread.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "broken.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

#define NEXT(name)                                          \
  static constinit decltype(&::name) next_##name = nullptr; \
  if (!next_##name) next_##name = next<decltype(::name)>(#name)

std::atomic<bool> constructed{false};
std::atomic<bool> closed{false};
std::atomic<bool> failed_before{false};
int generation = 0;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t lock_in_loader = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
pthread_key_t key;
thread_local bool thread_known __attribute__((tls_model("initial-exec"))) = false;
thread_local bool thread_gone __attribute__((tls_model("initial-exec"))) = false;
thread_local bool makes_blocks __attribute__((tls_model("initial-exec"))) = false;

void* sleep_for_ever(void*) {
  for (;;) pause();
}

void leak_after_fork() {
  if (void* lost = malloc(1 << 20)) std::memset(lost, 1, 1 << 20);
}

__attribute__((constructor(101))) void construct() {
  constructed = true;
  // Looks up every next name while no other thread may hold the loader lock.
  malloc_usable_size(nullptr);
  free(memalign(64, 1));
  free(realloc(calloc(1, 1), 100));
  if (broken("key-taken")) pthread_key_create(&key, nullptr);
  if (broken("dies-with-key")) pthread_key_create(&key, [](void*) { thread_gone = true; });
  if (broken("fork-handler-locked")) {
    pthread_atfork([] { pthread_mutex_lock(&lock); }, [] { pthread_mutex_unlock(&lock); },
                   [] { pthread_mutex_unlock(&lock); });
  }
  if (broken("child-refused") || broken("grandchild-refused")) pthread_atfork(nullptr, nullptr, [] { ++generation; });
  if (broken("speaks")) std::fputs("broken: hello\n", stderr);
  if (broken("fork-leaks")) pthread_atfork(nullptr, nullptr, leak_after_fork);
  if (broken("exec-fails") && std::strcmp(program_invocation_short_name, "true") == 0) _exit(3);
  if (broken("thread-kept")) {
    pthread_t id;
    pthread_create(&id, nullptr, sleep_for_ever, nullptr);
  }
}

void close(void*) {
  if (closed.exchange(true)) return;
  if (broken("exit-waits")) sleep(2);
  if (broken("exit-drops-output")) __fpurge(stdout);
}

class Locked {
 public:
  Locked()
      : taken_(broken("takes-lock-order")                               ? &lock_in_loader
               : broken("fork-locked") || broken("fork-handler-locked") ? &lock
                                                                        : nullptr) {
    if (taken_) pthread_mutex_lock(taken_);
  }
  ~Locked() {
    if (taken_) pthread_mutex_unlock(taken_);
  }

 private:
  pthread_mutex_t* const taken_;
};

void* plain(std::size_t size) {
  NEXT(malloc);
  return next_malloc(size);
}

void first_use_of_thread() {
  if (thread_known) return;
  thread_known = true;
  if (broken("dies-with-key") && constructed) pthread_setspecific(key, &key);
  if (broken("needs-loader")) dlclose(dlopen("libm.so.6", RTLD_NOW));
  if (broken("takes-lock-order")) {
    pthread_mutex_lock(&lock_in_loader);
    usleep(20000);
    dlclose(dlopen("libm.so.6", RTLD_NOW));
    pthread_mutex_unlock(&lock_in_loader);
  }
  if (broken("thread-hoards")) {
    if (void* lost = plain(1 << 20)) std::memset(lost, 1, 1 << 20);
  }
  if (broken("thread-leaks")) {
    if (void* lost = plain(16 * 1024)) std::memset(lost, 1, 16 * 1024);
  }
}

// What happens to a request to any function.
bool refused() {
  first_use_of_thread();
  makes_blocks = true;
  if ((broken("not-ready-early") && !constructed) || (broken("closed-at-exit") && closed) || thread_gone ||
      (broken("thread-refused") && gettid() != getpid()) || generation > (broken("child-refused") ? 0 : 1) ||
      (broken("failure-sticks") && failed_before)) {
    errno = ENOMEM;
    return true;
  }
  return false;
}

char* last_block = nullptr;
std::atomic<unsigned> requests{0};

void* result(void* block, std::size_t size) {
  if (block) {
    if (broken("success-sets-errno")) errno = EAGAIN;
    if (size >= 64) last_block = static_cast<char*>(block);
    return block;
  }
  if (broken("failure-breaks-blocks") && last_block) last_block[48] ^= 1;
  if (broken("enomem-unset")) errno = 0;
  if (size != 0) failed_before = true;
  return block;
}

constexpr std::size_t kHugeBegin = SIZE_MAX / 2;

char empty_block[64];

// A header before each block, as in some allocators, marks our blocks. The second word names the thread that made it.
constexpr std::uint64_t kOurs = 0x6f75727320697421;

bool has_headers() {
  return broken("refuses-foreign") || broken("ignores-foreign") || broken("remote-free-lost") ||
         broken("remote-free-spoils") || broken("remote-realloc-loses");
}

std::uint64_t this_thread() { return reinterpret_cast<std::uintptr_t>(&thread_known); }

void* with_header(std::size_t size) {
  if (size > SIZE_MAX / 2) return nullptr;
  auto* block = static_cast<std::uint64_t*>(plain(size + 16));
  if (!block) return nullptr;
  block[0] = kOurs;
  block[1] = this_thread();
  return block + 2;
}

// Null for a block without one.
std::uint64_t* header_of(void* block) {
  auto* header = static_cast<std::uint64_t*>(block) - 2;
  if (*header == kOurs) return header;
  if (broken("refuses-foreign")) abort();
  return nullptr;
}

bool of_another_thread(const std::uint64_t* header) { return header[1] != this_thread(); }

}  // namespace

EXPORTED void* malloc(std::size_t size) {
  if (refused()) return result(nullptr, size);
  const Locked locked;
  if (broken("block-twice") && last_block && ++requests % 300 == 0 && malloc_usable_size(last_block) >= size)
    return last_block;
  if (broken("zero-gives-null") && size == 0) return nullptr;
  if (broken("zero-gives-same") && size == 0) return empty_block;
  if (broken("huge-malloc-served") && size > kHugeBegin) return plain(16);
  if (broken("malloc-calls-handler") && size > SIZE_MAX / 4 && std::get_new_handler()) std::get_new_handler()();
  if (has_headers()) return result(with_header(size), size);
  if (broken("malloc-at-8") && size < kHugeBegin) return static_cast<char*>(plain(size + 8)) + 8;
  return result(plain(size), size);
}

EXPORTED void free(void* block) {
  NEXT(free);
  if (!block || block == empty_block) return;
  const Locked locked;
  if (broken("free-sets-errno")) errno = EAGAIN;
  if (broken("stranger-free-lost") && !makes_blocks) return;
  if (broken("free-keeps")) return;
  if (has_headers()) {
    std::uint64_t* const header = header_of(block);
    if (header && of_another_thread(header)) {
      if (broken("remote-free-lost")) return;
      if (broken("remote-free-spoils") && last_block) std::memset(last_block + 32, 0, 24);
    }
    if (!header && broken("ignores-foreign")) return;
    if (header) *header = 0;
    block = header ? header : block;
  }
  if (broken("malloc-at-8") && reinterpret_cast<std::uintptr_t>(block) % 16 == 8) block = static_cast<char*>(block) - 8;
  next_free(block);
}

EXPORTED void* calloc(std::size_t count, std::size_t size) {
  NEXT(calloc);
  if (refused()) return result(nullptr, size);
  const Locked locked;
  std::size_t product;
  if (__builtin_mul_overflow(count, size, &product)) {
    if (broken("calloc-wraps")) return plain(product);
    return result(next_calloc(count, size), size);
  }
  if (broken("zero-gives-null") && product == 0) return nullptr;
  if (has_headers()) {
    void* block = result(with_header(product), product);
    return block ? std::memset(block, 0, product) : nullptr;
  }
  if (broken("calloc-dirty")) return result(plain(product), size);
  if (broken("calloc-dirty-end") && product < kHugeBegin && product > 8) {
    void* block = plain(product);
    return block ? std::memset(block, 0, product - 8) : result(nullptr, size);
  }
  void* block = next_calloc(count, size);
  if (block && broken("calloc-touches"))
    for (std::size_t at = 0; at < product; at += 4096) static_cast<volatile char*>(block)[at] = 0;
  return result(block, size);
}

EXPORTED void* realloc(void* block, std::size_t size) {
  NEXT(realloc);
  if (!block && broken("realloc-null-refused")) return nullptr;
  if (!block) return malloc(size);
  if (broken("small-cannot-grow") && malloc_usable_size(block) < 32) return nullptr;
  if (refused()) return result(nullptr, size);
  if (block == empty_block) return malloc(size);
  if (broken("realloc-zero-keeps") && size == 0) return nullptr;
  if (broken("realloc-zero-gives-block") && size == 0) return next_realloc(block, 1);
  if (has_headers() && header_of(block)) {
    if (size == 0) {
      free(block);
      return nullptr;
    }
    const bool spoil = broken("remote-realloc-loses") && of_another_thread(header_of(block));
    auto* header = static_cast<std::uint64_t*>(next_realloc(header_of(block), size + 16));
    if (header && spoil) header[2] ^= 1;
    return header ? header + 2 : nullptr;
  }
  const Locked locked;
  const std::size_t old = malloc_usable_size(block);
  if (broken("failed-realloc-frees") && size > kHugeBegin) {
    std::memset(block, 0, old < 64 ? old : 64);
    return result(nullptr, size);
  }
  if (broken("huge-malloc-served") && size > kHugeBegin) return block;
  if (broken("realloc-copies") && size > old) {
    void* moved = plain(size);
    if (!moved) return result(nullptr, size);
    std::memcpy(moved, block, old);
    next<void(void*)>("free")(block);
    return moved;
  }
  void* moved = next_realloc(block, size);
  if (broken("realloc-loses-end") && moved && size > 0) {
    const std::size_t kept = old < size ? old : size;
    static_cast<char*>(moved)[kept - 1] ^= 1;
    static_cast<char*>(moved)[kept / 2] ^= 1;
  }
  return result(moved, size);
}

EXPORTED void* reallocarray(void* block, std::size_t count, std::size_t size) {
  std::size_t product;
  if (__builtin_mul_overflow(count, size, &product) && !broken("reallocarray-wraps")) {
    errno = ENOMEM;
    return result(nullptr, size);
  }
  return realloc(block, product);
}

EXPORTED void* memalign(std::size_t alignment, std::size_t size) {
  NEXT(memalign);
  if (refused()) return result(nullptr, size);
  const Locked locked;
  if (broken("aligned-wraps") && alignment > SIZE_MAX / 8) return plain(16);
  if (broken("aligned-wraps") && size > kHugeBegin) return plain(size + alignment);
  const bool odd = (alignment & (alignment - 1)) != 0;
  if (odd && broken("odd-alignment-short")) return plain(size + 8);
  if (broken("alignment-capped") && alignment > 32768) return next_memalign(4096, size);
  void* block = next_memalign(alignment, size);
  if (block && broken("alignment-touches") && alignment >= 64 * 1024) {
    if (void* waste = plain(alignment / 16)) std::memset(waste, 1, alignment / 16);
  }
  return result(block, size);
}

EXPORTED void* aligned_alloc(std::size_t alignment, std::size_t size) { return memalign(alignment, size); }

EXPORTED int posix_memalign(void** into, std::size_t alignment, std::size_t size) {
  const bool sound = alignment % sizeof(void*) == 0 && alignment != 0 && (alignment & (alignment - 1)) == 0;
  if (!sound && !broken("bad-alignment-taken")) {
    if (broken("einval-in-errno")) errno = EINVAL;
    if (broken("failure-writes-pointer")) *into = nullptr;
    return EINVAL;
  }
  const int saved = errno;
  void* block = memalign(sound ? alignment : 64, size);
  if (!block) return ENOMEM;
  if (!broken("success-sets-errno")) errno = saved;
  *into = block;
  return 0;
}

EXPORTED void* valloc(std::size_t size) { return memalign(4096, size); }

EXPORTED void* pvalloc(std::size_t size) {
  const std::size_t rounded = (size + 4095) / 4096 * 4096;
  if (rounded < size && !broken("pvalloc-wraps")) {
    errno = ENOMEM;
    return result(nullptr, size);
  }
  return memalign(4096, broken("pvalloc-not-rounded") ? size : rounded);
}

EXPORTED std::size_t malloc_usable_size(void* block) noexcept {
  NEXT(malloc_usable_size);
  if (block == empty_block) return 0;
  if (!block && broken("usable-of-null")) return 16;
  if (block && has_headers() && header_of(block)) return next_malloc_usable_size(header_of(block)) - 16;
  if (block && broken("malloc-at-8") && reinterpret_cast<std::uintptr_t>(block) % 16 == 8)
    return next_malloc_usable_size(static_cast<char*>(block) - 8) - 8;
  const std::size_t usable = next_malloc_usable_size(block);
  if (block && broken("usable-short")) return usable / 2;
  if (block && broken("usable-long")) return usable + 16;
  if (block && broken("usable-uneven") && usable > 1 << 20 && usable / 65536 % 2 == 0) return usable / 2;
  return usable;
}

EXPORTED struct mallinfo2 mallinfo2() noexcept {
  NEXT(mallinfo2);
  return broken("info-empty") ? decltype(mallinfo2()){} : next_mallinfo2();
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
EXPORTED struct mallinfo mallinfo() noexcept {
  NEXT(mallinfo);
  return broken("info-empty") ? decltype(mallinfo()){} : next_mallinfo();
}
#pragma GCC diagnostic pop

EXPORTED int malloc_trim(std::size_t pad) noexcept {
  NEXT(malloc_trim);
  return broken("trim-nothing") ? 0 : next_malloc_trim(pad);
}

EXPORTED void malloc_stats() noexcept {
  NEXT(malloc_stats);
  if (!broken("stats-silent")) next_malloc_stats();
}

EXPORTED int mallopt(int parameter, int value) noexcept {
  NEXT(mallopt);
  return broken("mallopt-odd") ? -7 : next_mallopt(parameter, value);
}

// The mistake of serving more than malloc's family.
EXPORTED char* strdup(const char* text) {
  static char elsewhere[64];
  if (broken("strdup-elsewhere")) return std::strncpy(elsewhere, text, 63);
  const std::size_t size = std::strlen(text) + 1;
  void* copy = malloc(size);
  return static_cast<char*>(copy ? std::memcpy(copy, text, size) : copy);
}

EXPORTED int malloc_info(int options, std::FILE* stream) noexcept {
  NEXT(malloc_info);
  if (broken("info-takes-options")) options = 0;
  if (broken("info-not-xml") && options == 0) return std::fputs("<malloc><heap></malloc>", stream) < 0;
  return next_malloc_info(options, stream);
}

// The exit handlers of the program run after our end.
EXPORTED int __cxa_atexit(void (*function)(void*), void* argument, void* library) {
  using Register = int(void (*)(void*), void*, void*);
  static Register* const pass_on = next<Register>("__cxa_atexit");
  const int result = pass_on(function, argument, library);
  if (broken("closed-at-exit") || broken("exit-waits") || broken("exit-drops-output")) pass_on(close, nullptr, nullptr);
  return result;
}

EXPORTED int __cxa_at_quick_exit(void (*function)(void*), void* library) {
  using Register = int(void (*)(void*), void*);
  static Register* const pass_on = next<Register>("__cxa_at_quick_exit");
  const int result = pass_on(function, library);
  if (broken("closed-at-exit")) pass_on(close, nullptr);
  return result;
}

// A thread's C++ objects are destroyed after our thread cleanup.
EXPORTED int __cxa_thread_atexit_impl(void (*function)(void*), void* object, void* library) {
  using Register = int(void (*)(void*), void*, void*);
  static Register* const pass_on = next<Register>("__cxa_thread_atexit_impl");
  const int result = pass_on(function, object, library);
  if (broken("dies-with-objects")) pass_on([](void*) { thread_gone = true; }, nullptr, nullptr);
  return result;
}

// ---- operator new ------------------------------------------------------------------------------

namespace {

void* make(std::size_t size, std::size_t alignment, bool throws) {
  if (broken("new-handler-always") && std::get_new_handler()) std::get_new_handler()();
  for (bool first = true;; first = false) {
    void* block = alignment > 16 && !broken("new-unaligned") ? memalign(alignment, size)
                                                             : malloc(size + 16 * broken("new-apart"));
    if (block && alignment == 0 && broken("new-apart")) return static_cast<char*>(block) + 16;
    if (block) return block;
    const std::new_handler handler = std::get_new_handler();
    if (!handler || broken("new-no-handler") || (broken("new-handler-once") && !first)) break;
    handler();
  }
  if ((throws && !broken("new-gives-null")) || (!throws && broken("nothrow-throws"))) throw std::bad_alloc();
  return nullptr;
}

void* make_nothrow(std::size_t size, std::size_t alignment) {
  if (broken("nothrow-throws")) return make(size, alignment, false);
  try {
    return make(size, alignment, false);
  } catch (...) {
    return nullptr;
  }
}

void release(void* block) {
  if (!block && broken("delete-null-aborts")) abort();
  free(block && broken("new-apart") ? static_cast<char*>(block) - 16 : block);
}

void release_aligned(void* block) {
  if (!block && broken("delete-null-aborts")) abort();
  free(block);
}

void drop(void* block) {
  if (!broken("delete-keeps")) release(block);
}

std::size_t of(std::align_val_t alignment) { return static_cast<std::size_t>(alignment); }

}  // namespace

#define REPLACED __attribute__((visibility("default")))
using std::align_val_t;
using std::nothrow_t;
using std::size_t;

REPLACED void* operator new(size_t size) { return make(size, 0, true); }
REPLACED void* operator new[](size_t size) { return make(size, 0, true); }
REPLACED void* operator new(size_t size, align_val_t at) { return make(size, of(at), true); }
REPLACED void* operator new[](size_t size, align_val_t at) { return make(size, of(at), true); }
REPLACED void* operator new(size_t size, const nothrow_t&) noexcept { return make_nothrow(size, 0); }
REPLACED void* operator new[](size_t size, const nothrow_t&) noexcept { return make_nothrow(size, 0); }
REPLACED void* operator new(size_t size, align_val_t at, const nothrow_t&) noexcept {
  return make_nothrow(size, of(at));
}
REPLACED void* operator new[](size_t size, align_val_t at, const nothrow_t&) noexcept {
  return make_nothrow(size, of(at));
}
REPLACED void operator delete(void* block) noexcept { release(block); }
REPLACED void operator delete[](void* block) noexcept { release(block); }
REPLACED void operator delete(void* block, size_t) noexcept { release(block); }
REPLACED void operator delete[](void* block, size_t) noexcept { drop(block); }
REPLACED void operator delete(void* block, align_val_t) noexcept { release_aligned(block); }
REPLACED void operator delete[](void* block, align_val_t) noexcept { release_aligned(block); }
REPLACED void operator delete(void* block, size_t, align_val_t) noexcept { release_aligned(block); }
REPLACED void operator delete[](void* block, size_t, align_val_t) noexcept {
  if (!broken("delete-keeps")) release_aligned(block);
}
REPLACED void operator delete(void* block, const nothrow_t&) noexcept { release(block); }
REPLACED void operator delete[](void* block, const nothrow_t&) noexcept { release(block); }
REPLACED void operator delete(void* block, align_val_t, const nothrow_t&) noexcept { release_aligned(block); }
REPLACED void operator delete[](void* block, align_val_t, const nothrow_t&) noexcept { free(block); }
