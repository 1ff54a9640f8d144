// The C library's names.
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>

#include <limits>

#include "entry/describe.h"
#include "entry/linux/no_bytes.h"
#include "entry/posix/aligned.h"
#include "heap/stats.h"
#include "platform/linux/libc.h"
#include "platform/platform.h"
#include "platform/sinks.h"

#define RH_EXPORT extern "C" [[gnu::visibility("default")]]

// Names that not every C library's headers declare.
RH_EXPORT void cfree(void* block) RH_C_NOEXCEPT;
RH_EXPORT void free_sized(void* block, size_t size) RH_C_NOEXCEPT;
RH_EXPORT void free_aligned_sized(void* block, size_t alignment, size_t size) RH_C_NOEXCEPT;
#if !defined(__GLIBC__)
RH_EXPORT void* pvalloc(size_t size);
RH_EXPORT int malloc_trim(size_t keep);
RH_EXPORT int mallopt(int parameter, int value);
RH_EXPORT void malloc_stats();
RH_EXPORT int malloc_info(int options, FILE* stream);
#endif

using namespace rh;

namespace {

// A thread that is cancelled ends behind this, not in the middle of what it writes.
class Uncancelled {
 public:
  Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

stats::Figures gathered() {
  stats::Figures figures;
  stats::gather(&figures);
  return figures;
}

#if defined(__GLIBC__)

// Of glibc's names: memory obtained, in large blocks, handed out, free.
template <typename Info> Info info_of(const stats::Figures& figures) {
  using Field = decltype(Info::arena);
  constexpr size_t kMost = static_cast<size_t>(std::numeric_limits<Field>::max());
  auto fit = [](size_t value) { return static_cast<Field>(value < kMost ? value : kMost); };
  // The figures are of different moments.
  auto without = [](size_t whole, size_t part) { return whole > part ? whole - part : 0; };
  Info info = {};
  size_t held = figures.arena.in_use + figures.arena.dirty;
  info.arena = fit(without(held, figures.large_bytes));
  info.hblks = fit(figures.large_blocks);
  info.hblkhd = fit(figures.large_bytes);
  info.uordblks = fit(figures.in_use);
  info.fordblks = fit(without(held, figures.in_use));
  info.keepcost = fit(figures.arena.dirty);
  return info;
}

#endif

}  // namespace

RH_EXPORT void* malloc(size_t size) RH_C_NOEXCEPT { return rules::allocate(size); }

RH_EXPORT void free(void* block) RH_C_NOEXCEPT { rules::free(block); }

RH_EXPORT void* calloc(size_t count, size_t size) RH_C_NOEXCEPT { return rules::allocate_zeroed(count, size); }

RH_EXPORT void* realloc(void* block, size_t size) RH_C_NOEXCEPT {
  return rules::reallocate(block, size_for_realloc(size));
}

RH_EXPORT void* reallocarray(void* block, size_t count, size_t size) RH_C_NOEXCEPT {
  size_t bytes = 0;
  if (!rules::product(count, size, &bytes)) return rules::out_of_memory();
  return rules::reallocate(block, size_for_realloc(bytes));
}

RH_EXPORT void cfree(void* block) RH_C_NOEXCEPT { rules::free(block); }

RH_EXPORT void free_sized(void* block, size_t size) RH_C_NOEXCEPT { rules::free_sized(block, size); }

RH_EXPORT void free_aligned_sized(void* block, size_t, size_t size) RH_C_NOEXCEPT { rules::free_sized(block, size); }

RH_EXPORT void* aligned_alloc(size_t alignment, size_t size) RH_C_NOEXCEPT {
  return aligned::aligned_alloc(alignment, size, rules::allocate_aligned);
}

RH_EXPORT int posix_memalign(void** block, size_t alignment, size_t size) RH_C_NOEXCEPT {
  return aligned::posix_memalign(block, alignment, size, rules::allocate_aligned);
}

RH_EXPORT void* memalign(size_t alignment, size_t size) RH_C_NOEXCEPT {
  return aligned::memalign(alignment, size, rules::allocate_aligned);
}

RH_EXPORT void* valloc(size_t size) RH_C_NOEXCEPT { return rules::allocate_aligned(platform::page_size(), size); }

RH_EXPORT void* pvalloc(size_t size) RH_C_NOEXCEPT { return aligned::pvalloc(size, rules::allocate_aligned); }

RH_EXPORT size_t malloc_usable_size(void* block) RH_C_NOEXCEPT { return rules::usable_size(block); }

RH_EXPORT int malloc_trim(size_t) RH_C_NOEXCEPT { return rules::trim() != 0; }

// glibc's parameters steer its own arenas and thresholds, which are not here: known ones are accepted without effect.
RH_EXPORT int mallopt(int parameter, int) RH_C_NOEXCEPT {
  constexpr int kLowest = -8;  // M_ARENA_MAX
  return parameter >= kLowest && parameter <= 1;
}

#if defined(__GLIBC__)

RH_EXPORT struct mallinfo2 mallinfo2() RH_C_NOEXCEPT { return info_of<struct mallinfo2>(gathered()); }

RH_EXPORT struct mallinfo mallinfo() RH_C_NOEXCEPT { return info_of<struct mallinfo>(gathered()); }

#endif

RH_EXPORT void malloc_stats() RH_C_NOEXCEPT {
  Uncancelled whole;
  Text text(write_to_error, nullptr);
  describe::statistics(text);
  text << '\n';
}

RH_EXPORT int malloc_info(int options, FILE* stream) RH_C_NOEXCEPT {
  if (options != 0) {
    errno = EINVAL;
    return -1;
  }
  Uncancelled whole;
  stats::Figures figures = gathered();
  fprintf(stream, "<malloc version=\"reheap-%s\">\n<sizes>\n", describe::version());
  for (size_t index = 0; index < size_class::kCount; ++index) {
    const stats::ClassFigures& of_class = figures.classes[index];
    if (of_class.slabs == 0) continue;
    fprintf(stream, "<size of=\"%zu\" slabs=\"%zu\" blocks=\"%zu\" used=\"%zu\"/>\n", size_class::size_of(index),
            of_class.slabs, of_class.blocks, of_class.in_use);
  }
  fprintf(stream, "</sizes>\n<total type=\"large\" count=\"%zu\" size=\"%zu\"/>\n", figures.large_blocks,
          figures.large_bytes);
  fprintf(stream, "<system type=\"current\" size=\"%zu\"/>\n", figures.arena.committed);
  fprintf(stream, "<system type=\"max\" size=\"%zu\"/>\n</malloc>\n", figures.arena.committed_peak);
  return 0;
}
