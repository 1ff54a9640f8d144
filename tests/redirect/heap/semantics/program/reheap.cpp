#include "reheap.h"

#include <reheap/reheap.h>
#include <stdlib.h>
#include <string.h>

namespace {

HMODULE module;
decltype(&rh_owns) owns;
bool heaps_replaced;
size_t by_maker[2];

bool know() {
  if (module == nullptr) return false;
  owns = reinterpret_cast<decltype(owns)>(reinterpret_cast<void*>(GetProcAddress(module, "rh_owns")));
  const char* layers = getenv("REHEAP_LAYERS");
  heaps_replaced = layers == nullptr || strcmp(layers, "both") == 0 || strcmp(layers, "heap") == 0;
  return owns != nullptr;
}

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

void expect_maker(Line& line, Maker maker, const void* block) {
  if (!heaps_replaced || block == nullptr) return;
  bool by_reheap = owns(block);
  ++by_maker[by_reheap];
  if (by_reheap == (maker == Maker::reheap)) return;
  line.say(by_reheap ? " REHEAP'S" : " NOT REHEAP'S");
  count_failure();
}

void tell_makers() {
  if (!heaps_replaced) return;
  Line("makers").say(" %Iu blocks by reheap, %Iu by the system", by_maker[true], by_maker[false]);
}
