// In libreheap-core malloc is the system's, and so are pointers that are not ours.
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "entry/foreign.h"
#if defined(_WIN32)
#include "entry/windows/lifetime.h"
#endif

namespace rh::foreign {

#if defined(_WIN32) && !defined(RH_FAKE_PLATFORM)
void resolve() { lifetime::anchor(); }
#else
void resolve() {}
#endif

void set_errno(int error) { errno = error; }

void free(void* block) { ::free(block); }

void* reallocate(void* block, size_t size) { return ::realloc(block, size); }

#if defined(_WIN32)
size_t usable_size(const void* block) { return ::_msize(const_cast<void*>(block)); }
#else
size_t usable_size(const void* block) { return ::malloc_usable_size(const_cast<void*>(block)); }
#endif

}  // namespace rh::foreign
