// So much of Darwin's <malloc/malloc.h> as a zone is made of: the tests' own, for systems without.
#pragma once

#include <stddef.h>
#include <stdint.h>

using kern_return_t = int;
using boolean_t = int;
using task_t = unsigned;
using vm_address_t = uintptr_t;
using vm_size_t = uintptr_t;

inline constexpr kern_return_t KERN_SUCCESS = 0, KERN_FAILURE = 5;
inline constexpr task_t TASK_NULL = 0;
inline constexpr unsigned MALLOC_PTR_IN_USE_RANGE_TYPE = 1, MALLOC_PTR_REGION_RANGE_TYPE = 2;

struct vm_range_t {
  vm_address_t address;
  vm_size_t size;
};

struct malloc_statistics_t {
  unsigned blocks_in_use;
  size_t size_in_use, max_size_in_use, size_allocated;
};

using memory_reader_t = kern_return_t(task_t, vm_address_t, vm_size_t, void**);
using vm_range_recorder_t = void(task_t, void*, unsigned type, vm_range_t*, unsigned count);
using print_task_printer_t = void(const char* format, ...);

struct malloc_zone_t;

struct malloc_introspection_t {
  kern_return_t (*enumerator)(task_t, void*, unsigned types, vm_address_t zone, memory_reader_t*, vm_range_recorder_t*);
  size_t (*good_size)(malloc_zone_t*, size_t);
  boolean_t (*check)(malloc_zone_t*);
  void (*print)(malloc_zone_t*, boolean_t verbose);
  void (*log)(malloc_zone_t*, void* address);
  void (*force_lock)(malloc_zone_t*);
  void (*force_unlock)(malloc_zone_t*);
  void (*statistics)(malloc_zone_t*, malloc_statistics_t*);
  boolean_t (*zone_locked)(malloc_zone_t*);
  void (*reinit_lock)(malloc_zone_t*);
  void (*print_task)(task_t, unsigned level, vm_address_t zone, memory_reader_t*, print_task_printer_t*);
  void (*task_statistics)(task_t, vm_address_t zone, memory_reader_t*, malloc_statistics_t*);
};

struct malloc_zone_t {
  size_t (*size)(malloc_zone_t*, const void* pointer);
  void* (*malloc)(malloc_zone_t*, size_t);
  void* (*calloc)(malloc_zone_t*, size_t count, size_t);
  void* (*valloc)(malloc_zone_t*, size_t);
  void (*free)(malloc_zone_t*, void* block);
  void* (*realloc)(malloc_zone_t*, void* block, size_t);
  void (*destroy)(malloc_zone_t*);
  const char* zone_name;
  unsigned (*batch_malloc)(malloc_zone_t*, size_t, void** blocks, unsigned count);
  void (*batch_free)(malloc_zone_t*, void** blocks, unsigned count);
  malloc_introspection_t* introspect;
  unsigned version;
  void* (*memalign)(malloc_zone_t*, size_t alignment, size_t);
  void (*free_definite_size)(malloc_zone_t*, void* block, size_t);
  size_t (*pressure_relief)(malloc_zone_t*, size_t goal);
  boolean_t (*claimed_address)(malloc_zone_t*, void* pointer);
};

// As zones.cpp plays them.
extern "C" {
kern_return_t malloc_get_all_zones(task_t, memory_reader_t*, vm_address_t** zones, unsigned* count);
void malloc_zone_register(malloc_zone_t*);
void malloc_zone_unregister(malloc_zone_t*);
malloc_zone_t* malloc_default_purgeable_zone();
malloc_zone_t* malloc_zone_from_ptr(const void* pointer);
}
