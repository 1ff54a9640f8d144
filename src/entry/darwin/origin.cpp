#include "entry/origin.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "reheap/reheap.h"

namespace rh::origin {

Path library_of(const void* address) {
  Path path;
  Dl_info info = {};
  if (address == nullptr || dladdr(address, &info) == 0 || info.dli_fname == nullptr) return path;
  const size_t length = __builtin_strlen(info.dli_fname);
  if (length < Path::kMost) __builtin_memcpy(path.text, info.dli_fname, length);
  return path;
}

// malloc is the system's whoever serves it: its block tells.
Path malloc_server() {
  void* block = ::malloc(1);
  const bool is_ours = rh_owns(block);
  ::free(block);
  return library_of(is_ours ? reinterpret_cast<const void*>(&rh_malloc) : reinterpret_cast<const void*>(&::malloc));
}

}  // namespace rh::origin
