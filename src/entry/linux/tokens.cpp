// What programs compiled with allocation tokens call in place of the C library's names. In the default build each is
// the name without a token.
#include <malloc.h>
#include <stdlib.h>

#include "entry/linux/no_bytes.h"
#include "entry/posix/aligned.h"
#include "entry/token_names.h"
#include "platform/linux/libc.h"

// glibc's headers have the first since 2.26, musl's have no pvalloc.
extern "C" void* reallocarray(void* block, size_t count, size_t size) RH_C_NOEXCEPT;
extern "C" void* pvalloc(size_t size) RH_C_NOEXCEPT;

using namespace rh;

namespace {

// ---- in hardened builds -------------------------------------------------------------------------
// Elsewhere nobody calls them. Without optimisation they are there nevertheless, and may not name what is not.

void* allocate_of(Partition of, size_t alignment, size_t size, bool zeroed = false) {
  if (alignment > kMaxAlignment || size > kMaxRequest) return rules::out_of_memory();
  if constexpr (kHardened) return rules::checked(rules::allocate_typed(of, alignment, size, rules::Maker::c, zeroed));
  return nullptr;
}

auto aligned_of(Partition of) {
  return [of](size_t alignment, size_t size) { return allocate_of(of, alignment, size); };
}

void* reallocate_of(Partition of, void* block, size_t size) {
  if (block == nullptr) return allocate_of(of, kBlockAlign, size);
  if constexpr (kHardened) {
    if (hardened::holds(block)) return rules::reallocate_typed(of, block, size_for_realloc(size));
  }
  return rules::reallocate_elsewhere(block, size);
}

// ---- in both ------------------------------------------------------------------------------------

void* malloc_of(Partition of, size_t size) { return kHardened ? allocate_of(of, kBlockAlign, size) : malloc(size); }

void* calloc_of(Partition of, size_t count, size_t size) {
  if constexpr (!kHardened) return calloc(count, size);
  size_t bytes = 0;
  if (!rules::product(count, size, &bytes)) return rules::out_of_memory();
  return allocate_of(of, kBlockAlign, bytes, true);
}

void* realloc_of(Partition of, void* block, size_t size) {
  return kHardened ? reallocate_of(of, block, size) : realloc(block, size);
}

void* reallocarray_of(Partition of, void* block, size_t count, size_t size) {
  if constexpr (!kHardened) return reallocarray(block, count, size);
  size_t bytes = 0;
  if (!rules::product(count, size, &bytes)) return rules::out_of_memory();
  return reallocate_of(of, block, bytes);
}

void* aligned_alloc_of(Partition of, size_t alignment, size_t size) {
  return kHardened ? aligned::aligned_alloc(alignment, size, aligned_of(of)) : aligned_alloc(alignment, size);
}

int posix_memalign_of(Partition of, void** block, size_t alignment, size_t size) {
  if constexpr (!kHardened) return posix_memalign(block, alignment, size);
  return aligned::posix_memalign(block, alignment, size, aligned_of(of));
}

void* memalign_of(Partition of, size_t alignment, size_t size) {
  return kHardened ? aligned::memalign(alignment, size, aligned_of(of)) : memalign(alignment, size);
}

void* valloc_of(Partition of, size_t size) {
  return kHardened ? allocate_of(of, platform::page_size(), size) : valloc(size);
}

void* pvalloc_of(Partition of, size_t size) {
  return kHardened ? aligned::pvalloc(size, aligned_of(of)) : pvalloc(size);
}

}  // namespace

RH_TOKEN(void*, malloc_of, "malloc", (size), size_t size)
RH_TOKEN(void*, calloc_of, "calloc", (count, size), size_t count, size_t size)
RH_TOKEN(void*, realloc_of, "realloc", (block, size), void* block, size_t size)
RH_TOKEN(void*, reallocarray_of, "reallocarray", (block, count, size), void* block, size_t count, size_t size)
RH_TOKEN(void*, aligned_alloc_of, "aligned_alloc", (alignment, size), size_t alignment, size_t size)
RH_TOKEN(int, posix_memalign_of, "posix_memalign", (block, alignment, size), void** block, size_t alignment,
         size_t size)
RH_TOKEN(void*, memalign_of, "memalign", (alignment, size), size_t alignment, size_t size)
RH_TOKEN(void*, valloc_of, "valloc", (size), size_t size)
RH_TOKEN(void*, pvalloc_of, "pvalloc", (size), size_t size)
