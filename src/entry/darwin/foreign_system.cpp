// In libreheap-core malloc is the system's, and so are pointers that are not ours.
#include <errno.h>
#include <malloc/malloc.h>
#include <pthread.h>
#include <stdlib.h>

#include "entry/foreign.h"
#include "entry/lifetime.h"
#include "heap/fork.h"

namespace rh {

constinit const Foreign g_foreign = {
    .resolve =
        [] {
          lifetime::anchor();
          pthread_atfork(fork::before, fork::after_in_parent, fork::after_in_child);
        },
    .free = [](void* block) { ::free(block); },
    .reallocate = [](void* block, size_t size) { return ::realloc(block, size); },
    .usable_size = [](void* block) { return ::malloc_size(block); },
    .set_errno = [](int error) { errno = error; },
};

}  // namespace rh
