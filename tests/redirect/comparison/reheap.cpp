#include "reheap.h"

#include <reheap/reheap.h>

#include "exported.h"

namespace {

HMODULE module;
decltype(rh_owns)* owns;
decltype(rh_stats_get)* stats_get;

bool know() { return module != nullptr && find(module, "rh_owns", owns) && find(module, "rh_stats_get", stats_get); }

}  // namespace

void find_reheap() {
  module = GetModuleHandleA("reheap.dll");
  know();
}

bool load_reheap(const char* path) {
  module = LoadLibraryA(path);
  return know();
}

bool reheap_loaded() { return module != nullptr; }

bool reheap_owns(const void* pointer) { return reheap_loaded() && owns(pointer); }

size_t reheap_in_use() {
  if (!reheap_loaded()) return 0;
  rh_stats stats = {};
  stats.struct_size = sizeof stats;
  stats_get(&stats);
  return stats.in_use;
}
