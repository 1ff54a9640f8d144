// What programs compiled with allocation tokens call in place of the C runtime's names.
#include "entry/token_names.h"
#include "entry/windows/crt_fast.h"
#include "entry/windows/host.h"

using namespace rh;

namespace {

void* malloc_of(Partition of, size_t size) {
  return kHardened ? crt::malloc_of(g_own_host, of, size) : crt::malloc_inlined(g_own_host, size);
}

void* calloc_of(Partition of, size_t count, size_t size) { return crt::calloc_of(g_own_host, of, count, size); }

void* realloc_of(Partition of, void* block, size_t size) { return crt::realloc_of(g_own_host, of, block, size); }

}  // namespace

RH_TOKEN(void*, malloc_of, "malloc", (size), size_t size)
RH_TOKEN(void*, calloc_of, "calloc", (count, size), size_t count, size_t size)
RH_TOKEN(void*, realloc_of, "realloc", (block, size), void* block, size_t size)
