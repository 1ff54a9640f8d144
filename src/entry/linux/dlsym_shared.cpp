// Only in the shared library. Whoever opens the C library by its name, or any library that needs it, and asks that for
// free, as ctypes does of Python, gets the C library's: with blocks that the C library's strdup has from us. Where
// malloc is ours, such a question is answered with ours. So is that for the next free behind a library which was opened
// while the program ran: what it shares blocks with has ours, and we pass nothing on to it.
//
// What RTLD_NEXT and RTLD_DEFAULT mean the loader tells by the return address: so its function is jumped to.
#include <link.h>

#include "base/bits.h"
#include "base/text.h"
#include "entry/linux/opening.h"
#include "platform/linux/kernel_function.h"
#include "platform/platform.h"

// By which blocks come and go, memory that is free does, and which tell of it: Python services call malloc_trim so.
#if defined(__GLIBC__)
#define RH_OF_GLIBC(each) each(mallinfo) each(mallinfo2)
#else
#define RH_OF_GLIBC(each)
#endif
#define RH_ASKED_FOR(each)                                                                                  \
  each(free) each(malloc) each(calloc) each(realloc) each(reallocarray) each(posix_memalign) each(memalign) \
      each(aligned_alloc) each(valloc) each(pvalloc) each(cfree) each(malloc_usable_size) each(malloc_trim) \
          each(malloc_stats) each(malloc_info) each(mallopt) RH_OF_GLIBC(each)

// Not every C library's headers declare all of them.
#define RH_DECLARE(function) extern "C" void rh_asked_##function() asm(#function);
RH_ASKED_FOR(RH_DECLARE)
#undef RH_DECLARE

// Weak: musl's loader tells no versions apart.
extern "C" [[gnu::weak]] void* dlvsym(void* handle, const char* name, const char* version) RH_C_NOEXCEPT;

namespace rh {

namespace {

using LookUp = void*(void* handle, const char* name);

// The first version that the C library had the name by, which it keeps. To ask for a name that is not there would
// allocate.
#if defined(__x86_64__)
#define RH_FIRST_VERSION "GLIBC_2.2.5"
#elif defined(__i386__)
#define RH_FIRST_VERSION "GLIBC_2.0"
#elif defined(__aarch64__)
#define RH_FIRST_VERSION "GLIBC_2.17"
#elif defined(__riscv)
#define RH_FIRST_VERSION "GLIBC_2.27"
#else
#define RH_FIRST_VERSION "GLIBC_2.34"
#endif

constinit std::atomic<LookUp*> g_look_up{nullptr};

// Of musl that in the C library itself, which is found by another function of it.
LookUp* find_look_up() {
  if (dlvsym != nullptr) return reinterpret_cast<LookUp*>(dlvsym(RTLD_NEXT, "dlsym", RH_FIRST_VERSION));
  Dl_info library = {};
  if (dladdr(reinterpret_cast<void*>(&dlerror), &library) == 0) return nullptr;
  return reinterpret_cast<LookUp*>(platform::find_function(address_of(library.dli_fbase), "dlsym"));
}

LookUp* next_look_up() {
  LookUp* next = g_look_up.load(std::memory_order_relaxed);
  if (next != nullptr) return next;
  next = find_look_up();
  g_look_up.store(next, std::memory_order_relaxed);
  return next;
}

struct Name {
  const char* name;
  void* function;
};

// Sanitizers look names up before their own strcmp works.
void* ours_by(const char* name) {
#define RH_NAME(function) {#function, reinterpret_cast<void*>(&rh_asked_##function)},
  const Name names[] = {RH_ASKED_FOR(RH_NAME)};
#undef RH_NAME
  for (const Name& each : names)
    if (same_text(each.name, name)) return each.function;
  return nullptr;
}

// What stands for the one found, if that is the next behind us: what other libraries found, they have a reason for.
void* instead_of(void* found, const char* name, void* ours) {
  if (found == nullptr || found == ours || found != next_look_up()(RTLD_NEXT, name)) return found;
  return origin::serves_malloc() ? ours : found;
}

// Whose code lies at `address`: its number in the order in which the program's objects were loaded.
struct Search {
  uintptr_t address;
  unsigned number;
};

int holds_code(dl_phdr_info* object, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  ++search->number;
  for (unsigned at = 0; at < object->dlpi_phnum; ++at) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[at];
    uintptr_t offset = search->address - object->dlpi_addr - segment.p_vaddr;
    if (segment.p_type == PT_LOAD && offset < segment.p_memsz) return 1;
  }
  return 0;
}

constinit unsigned g_loaded_at_start = 0;

[[gnu::constructor]] void count_loaded() {
  if (platform::is_under_thread_sanitizer()) return;  // whose dl_iterate_phdr may not work yet
  Search all = {0, 0};
  dl_iterate_phdr(holds_code, &all);
  g_loaded_at_start = all.number;
}

bool was_opened_later(const void* code) {
  if (g_loaded_at_start == 0) return false;
  Search search = {address_of(code), 0};
  return dl_iterate_phdr(holds_code, &search) != 0 && search.number > g_loaded_at_start;
}

}  // namespace

}  // namespace rh

RH_JUMPS_AS(dlsym, look_up_symbol, (void* handle, const char* name)) {
  auto* next = rh::next_look_up();
  void* ours = handle != RTLD_DEFAULT ? rh::ours_by(name) : nullptr;
  if (ours != nullptr && handle != RTLD_NEXT) return rh::instead_of(next(handle, name), name, ours);
  if (ours != nullptr && rh::was_opened_later(__builtin_return_address(0))) {
    if (rh::origin::serves_malloc()) return ours;
  }
  RH_JUMP next(handle, name);
}
