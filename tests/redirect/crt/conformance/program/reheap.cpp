#include "reheap.h"

#include <reheap/reheap.h>

#include "comparison/line.h"

namespace {

HMODULE module;
decltype(&rh_owns) owns;
decltype(&rh_stats_get) stats_get;

template <typename F>
bool find(F& function, const char* name) {
  function = reinterpret_cast<F>(reinterpret_cast<void*>(GetProcAddress(module, name)));
  return function != nullptr;
}

}  // namespace

bool load_reheap(const char* path) {
  module = LoadLibraryA(path);
  return module != nullptr && find(owns, "rh_owns") && find(stats_get, "rh_stats_get");
}

bool reheap_loaded() { return module != nullptr; }

bool reheap_owns(const void* pointer) { return reheap_loaded() && owns(pointer); }

void expect_served(Line& line, const void* block) {
  if (!reheap_loaded() || owns(block)) return;
  line.say(" NOT REHEAP'S");
  count_failure();
}

void tell_served(const char* name, const void* block) {
  if (!reheap_loaded() || block == nullptr) return;
  Line("served").say(" %s %s", name, owns(block) ? "by reheap" : "by the CRT");
}

size_t reheap_in_use() {
  if (!reheap_loaded()) return 0;
  rh_stats stats = {};
  stats.struct_size = sizeof stats;
  stats_get(&stats);
  return stats.in_use;
}
