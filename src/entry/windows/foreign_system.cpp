// In libreheap-core malloc is the C runtime's, and so are pointers that are not ours.
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "entry/foreign.h"
#include "entry/lifetime.h"

namespace rh {

constinit const Foreign g_foreign = {
#if defined(RH_FAKE_PLATFORM)
    .resolve = [] {},
#else
    .resolve = [] { lifetime::anchor(); },
#endif
    .free = [](void* block) { ::free(block); },
    .reallocate = [](void* block, size_t size) { return ::realloc(block, size); },
    .usable_size = [](void* block) { return ::_msize(block); },
    .set_errno = [](int error) { errno = error; },
};

}  // namespace rh
