#include "entry/linux/origin.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "heap/heap.h"
#include "platform/linux/libc.h"
#include "reheap/reheap.h"

// Weak: a statically linked program may have no loader.
extern "C" [[gnu::weak]] int dladdr(const void* address, Dl_info* info) RH_C_NOEXCEPT;
extern "C" [[gnu::weak]] void* dlsym(void* handle, const char* name) RH_C_NOEXCEPT;

namespace rh::origin {

Path library_of(const void* address) {
  Path path;
  Dl_info info = {};
  if (address == nullptr || dladdr == nullptr || dladdr(address, &info) == 0) return path;
  if (info.dli_fname == nullptr) return path;
  size_t length = __builtin_strlen(info.dli_fname);
  if (length < Path::kMost) __builtin_memcpy(path.text, info.dli_fname, length);
  return path;
}

namespace {

void* found_malloc() { return dlsym != nullptr ? dlsym(RTLD_DEFAULT, "malloc") : nullptr; }

// Its address would not tell: a program that takes it may have put its own in its place.
bool makes_our_blocks(void* found) {
  if (found == nullptr) return true;
  void* block = reinterpret_cast<void* (*)(size_t)>(found)(1);
  bool is_ours = rh_owns(block);
  auto free_found = reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, "free"));
  if (free_found != nullptr) free_found(block);
  return is_ours;
}

}  // namespace

bool serves_malloc() { return !is_left_to_other() && makes_our_blocks(found_malloc()); }

Path malloc_server() {
  void* found = found_malloc();
  if (is_left_to_other()) return library_of(dlsym(RTLD_NEXT, "malloc"));
  return library_of(makes_our_blocks(found) ? reinterpret_cast<const void*>(&rh_malloc) : found);
}

}  // namespace rh::origin
