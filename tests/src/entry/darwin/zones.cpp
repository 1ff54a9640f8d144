// Zones as Darwin's malloc keeps them: a new one is the last, and one that is taken away leaves its place to the last.
#include "entry/darwin/zones.h"

#include <stdlib.h>

#include <algorithm>
#include <map>

namespace zones {
namespace {

std::map<const void*, size_t>& blocks() {
  static std::map<const void*, size_t> made;
  return made;
}

int g_freed = 0, g_resized = 0, g_disturb = 0;
malloc_zone_t* g_purgeable_over = nullptr;

size_t size_of(malloc_zone_t*, const void* pointer) {
  auto found = blocks().find(pointer);
  return found != blocks().end() ? found->second : 0;
}

void free_here(malloc_zone_t*, void* block) {
  ++g_freed;
  blocks().erase(block);
  free(block);
}

void* resize_here(malloc_zone_t*, void* block, size_t size) {
  ++g_resized;
  blocks().erase(block);
  void* resized = realloc(block, size);
  blocks()[resized] = size;
  return resized;
}

malloc_zone_t make_system() {
  malloc_zone_t zone = {};
  zone.size = size_of;
  zone.free = free_here;
  zone.realloc = resize_here;
  zone.zone_name = "system";
  return zone;
}

malloc_zone_t make_other() {
  malloc_zone_t zone = {};
  zone.size = [](malloc_zone_t*, const void*) { return size_t{0}; };
  zone.zone_name = "other";
  return zone;
}

malloc_zone_t g_system = make_system(), g_other = make_other(), g_late = make_other();

}  // namespace

std::vector<malloc_zone_t*>& registered() {
  static std::vector<malloc_zone_t*> all{&g_system, &g_other};
  return all;
}

malloc_zone_t* of_system() { return &g_system; }
malloc_zone_t* purgeable_over() { return g_purgeable_over; }
int freed() { return g_freed; }
int resized() { return g_resized; }
void disturb(int times) { g_disturb = times; }

void* made(size_t size) {
  void* block = malloc(size);
  blocks()[block] = size;
  return block;
}

}  // namespace zones

using zones::registered;

kern_return_t malloc_get_all_zones(task_t, memory_reader_t*, vm_address_t** all, unsigned* count) {
  *all = reinterpret_cast<vm_address_t*>(registered().data());
  *count = static_cast<unsigned>(registered().size());
  return KERN_SUCCESS;
}

void malloc_zone_register(malloc_zone_t* zone) {
  if (std::find(registered().begin(), registered().end(), zone) == registered().end()) registered().push_back(zone);
}

void malloc_zone_unregister(malloc_zone_t* zone) {
  if (zones::g_disturb != 0) {
    --zones::g_disturb;
    std::erase(registered(), &zones::g_late);
    malloc_zone_register(&zones::g_late);
  }
  auto found = std::find(registered().begin(), registered().end(), zone);
  if (found == registered().end()) return;
  *found = registered().back();
  registered().pop_back();
}

malloc_zone_t* malloc_default_purgeable_zone() {
  if (zones::g_purgeable_over == nullptr) zones::g_purgeable_over = registered().front();
  return &zones::g_other;
}

malloc_zone_t* malloc_zone_from_ptr(const void* pointer) {
  for (malloc_zone_t* zone : registered())
    if (zone->size(zone, pointer) != 0) return zone;
  return nullptr;
}
