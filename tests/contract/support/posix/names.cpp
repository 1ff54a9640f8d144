#include "support/names.h"

#include <dlfcn.h>
#include <malloc.h>

#include <cerrno>
#include <cstdlib>

#include "support/library.h"
#include "support/process.h"
#include "support/scenario.h"

namespace contract {
namespace {

void* make_posix(std::size_t alignment, std::size_t size) {
  void* block = nullptr;
  const std::size_t least = sizeof(void*);
  const int error = posix_memalign(&block, alignment < least ? least : alignment, size);
  if (error != 0) errno = error;  // which it leaves alone itself
  return block;
}

#ifdef __GLIBC__
#if !__GLIBC_PREREQ(2, 26)
// What programs are linked for may not have it; what they run on does.
void* reallocarray(void* block, std::size_t count, std::size_t size) {
  static auto* const found = find<void*(void*, std::size_t, std::size_t)>("reallocarray");
  return found(block, count, size);
}
#endif
#endif

void* resize_plain(void* block, std::size_t, std::size_t size) { return realloc(block, size); }

const Maker plain[] = {
    {"malloc", [](std::size_t size) { return malloc(size); }},
    {"calloc(1, n)", [](std::size_t size) { return calloc(opaque<std::size_t>(1), size); }},
    {"calloc(n, 1)", [](std::size_t size) { return calloc(size, opaque<std::size_t>(1)); }},
    {"realloc(NULL, n)", [](std::size_t size) { return realloc(opaque<void*>(nullptr), size); }},
    {"reallocarray(NULL, n, 1)", [](std::size_t size) { return reallocarray(nullptr, size, opaque<std::size_t>(1)); }},
    {"aligned_alloc(16, n)", [](std::size_t size) { return aligned_alloc(16, size); }},
    {"aligned_alloc(64, n)", [](std::size_t size) { return aligned_alloc(64, size); }},
    {"aligned_alloc(1 MiB, n)", [](std::size_t size) { return aligned_alloc(MiB, size); }},
    {"memalign(32, n)", [](std::size_t size) { return memalign(32, size); }},
    {"memalign(4096, n)", [](std::size_t size) { return memalign(4096, size); }},
    {"posix_memalign(64, n)", [](std::size_t size) { return make_posix(64, size); }},
    {"valloc", [](std::size_t size) { return valloc(size); }},
#if defined(__GLIBC__)
    {"pvalloc", [](std::size_t size) { return pvalloc(size); }},
#endif
};

const AlignedMaker with_alignment[] = {
    {"aligned_alloc", [](std::size_t alignment, std::size_t size) { return aligned_alloc(alignment, size); },
     resize_plain, free},
    {"memalign", [](std::size_t alignment, std::size_t size) { return memalign(alignment, size); }, resize_plain, free},
    {"posix_memalign", make_posix, resize_plain, free},
};

// The C library's own malloc, whoever serves the name otherwise: glibc keeps names for it that nobody stands before.
#if defined(__GLIBC__)
#define OWN_NAME(name) "__libc_" name
#else
#define OWN_NAME(name) name
#endif

template <class Function> Function* of_c_library(const char* name) {
  static void* const library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  NEED(library);
  void* found = dlsym(library, name);
  NEED(found, "%s", name);
  return reinterpret_cast<Function*>(found);
}

using Make = void*(std::size_t);
using MakeAligned = void*(std::size_t, std::size_t);

}  // namespace

std::span<const Maker> makers() { return plain; }
std::span<const AlignedMaker> aligned_makers() { return with_alignment; }
std::size_t usable(void* block) { return malloc_usable_size(block); }

void* resize_array(void* block, std::size_t count, std::size_t size) { return reallocarray(block, count, size); }

bool runtime_is_strict() { return true; }
bool c_library_is_strict() { return true; }

std::span<const Maker> foreign_makers() {
  static const Maker all[] = {{"malloc", of_c_library<Make>(OWN_NAME("malloc"))},
#if defined(__GLIBC__)
                              {"valloc", of_c_library<Make>(OWN_NAME("valloc"))}
#endif
  };
  return all;
}

std::span<const AlignedMaker> foreign_aligned_makers() {
  static const AlignedMaker all[] = {
      {"memalign", of_c_library<MakeAligned>(OWN_NAME("memalign")), resize_plain, free},
#if !defined(__GLIBC__)
      {"aligned_alloc", of_c_library<MakeAligned>("aligned_alloc"), resize_plain, free},
#endif
  };
  return all;
}

void free_foreign(void* block) { of_c_library<void(void*)>(OWN_NAME("free"))(block); }

const bool kMovesPages = true;
#if defined(__GLIBC__)
const bool kReallocFrees = true;
#else
const bool kReallocFrees = false;
#endif

}  // namespace contract
