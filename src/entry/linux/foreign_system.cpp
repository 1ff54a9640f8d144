// In libreheap-core malloc is the system's, and so are pointers that neither this copy made nor another.
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "entry/copies.h"
#include "entry/foreign.h"
#include "entry/lifetime.h"
#include "entry/rules.h"

namespace rh {

namespace {

void free_system(void* block) {
  if (!copies::free(block)) ::free(block);
}

void* reallocate_system(void* block, size_t size) {
  if (size_t present = 0; copies::bytes_from(block, &present))
    return rules::take_over(block, present, kBlockAlign, size);
  return ::realloc(block, size);
}

size_t usable_size_system(void* block) {
  if (size_t present = 0; copies::bytes_from(block, &present)) return present;
  return ::malloc_usable_size(block);
}

}  // namespace

constinit const Foreign g_foreign = {
    .resolve = [] { lifetime::anchor(); },
    .free = free_system,
    .reallocate = reallocate_system,
    .usable_size = usable_size_system,
    .set_errno = [](int error) { errno = error; },
};

}  // namespace rh
