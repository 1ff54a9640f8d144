// In libreheap-core malloc is the system's, and so are pointers that are not ours.
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "entry/foreign.h"
#include "entry/lifetime.h"

namespace rh {

constinit const Foreign g_foreign = {
    .resolve = [] { lifetime::anchor(); },
    .free = [](void* block) { ::free(block); },
    .reallocate = [](void* block, size_t size) { return ::realloc(block, size); },
    .usable_size = [](void* block) { return ::malloc_usable_size(block); },
    .set_errno = [](int error) { errno = error; },
};

}  // namespace rh
