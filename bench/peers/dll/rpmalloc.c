/* rpmalloc, in one file with what the layers call.
 *
 * Built as for a DLL (BUILD_DYNAMIC_LINK), which leaves out its callbacks for fibre-local storage: a thread's heap is
 * given back when the DLL hears that the thread ends, and at the end of the process nothing is. Its way of static
 * programs cannot work below the system's heap: FlsAlloc and FlsSetValue allocate, so its first block would ask for its
 * first block.
 *
 * It cannot tell its blocks from others'. What it maps is noted here: a bit for each 64 KiB, the size of its spans. */
#include "peer.h"

/* rpmalloc's one file; the folder is given to the compiler. */
#include <rpmalloc.c>

const char peer_name[] = "rpmalloc";

enum { GRAIN_SHIFT = 16, PART_SHIFT = 32, PARTS = 1 << 15, GRAINS = 1 << (PART_SHIFT - GRAIN_SHIFT) };

typedef struct {
  _Atomic(uint64_t) words[GRAINS / 64];
} Part;

static _Atomic(Part*) parts[PARTS];

static Part* part_of(uintptr_t address) {
  _Atomic(Part*)* place = &parts[address >> PART_SHIFT];
  Part* part = atomic_load_explicit(place, memory_order_acquire);
  if (part) return part;
  Part* made = VirtualAlloc(NULL, sizeof *made, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (made && !atomic_compare_exchange_strong(place, &part, made)) {
    VirtualFree(made, 0, MEM_RELEASE);
    made = part;
  }
  return made;
}

static int note(void* begin, size_t size, int ours) {
  uintptr_t end = (uintptr_t)begin + size;
  for (uintptr_t at = (uintptr_t)begin; at < end; at += (uintptr_t)1 << GRAIN_SHIFT) {
    Part* part = part_of(at);
    if (!part) return 0;
    size_t grain = (at >> GRAIN_SHIFT) & (GRAINS - 1);
    uint64_t bit = (uint64_t)1 << (grain % 64);
    if (ours)
      atomic_fetch_or_explicit(&part->words[grain / 64], bit, memory_order_release);
    else
      atomic_fetch_and_explicit(&part->words[grain / 64], ~bit, memory_order_release);
  }
  return 1;
}

static void* map_noted(size_t size, size_t* offset) {
  void* memory = _rpmalloc_mmap_os(size, offset);
  if (!memory || note(memory, size, 1)) return memory;
  _rpmalloc_unmap_os(memory, size, *offset, size);
  return NULL;
}

static void unmap_noted(void* memory, size_t size, size_t offset, size_t release) {
  if (release) note(memory, release, 0);
  _rpmalloc_unmap_os(memory, size, offset, release);
}

void peer_start(void) {
  static rpmalloc_config_t config = {.memory_map = map_noted, .memory_unmap = unmap_noted};
  rpmalloc_initialize_config(&config);
}

void peer_thread_ends(void) { rpmalloc_thread_finalize(1); }

int peer_owns(const void* block) {
  uintptr_t address = (uintptr_t)block;
  if (address >> PART_SHIFT >= PARTS) return 0;
  Part* part = atomic_load_explicit(&parts[address >> PART_SHIFT], memory_order_acquire);
  if (!part) return 0;
  size_t grain = (address >> GRAIN_SHIFT) & (GRAINS - 1);
  return (atomic_load_explicit(&part->words[grain / 64], memory_order_relaxed) >> (grain % 64)) & 1;
}

/* As its functions do when it is preloaded: a thread gets its heap with its first block. */
static FORCEINLINE heap_t* own_heap(void) {
  heap_t* heap = get_thread_heap_raw();
  if (EXPECTED(heap != NULL)) return heap;
  rpmalloc_thread_initialize();
  return get_thread_heap_raw();
}

void* peer_malloc(size_t size) { return _rpmalloc_allocate(own_heap(), size); }

void* peer_zalloc(size_t size) {
  void* block = peer_malloc(size);
  return block ? memset(block, 0, size) : NULL;
}

int peer_free(void* block) {
  if (!peer_owns(block)) return 0;
  _rpmalloc_deallocate(block);
  return 1;
}

size_t peer_size(const void* block) { return _rpmalloc_usable_size((void*)block); }

void* peer_realloc(void* block, size_t size) { return _rpmalloc_reallocate(own_heap(), block, size, 0, 0); }

int peer_fits(void* block, size_t size) { return size <= peer_size(block); }

void* peer_aligned(size_t size, size_t alignment, size_t offset) {
  if (offset % alignment != 0) return NULL;
  return _rpmalloc_aligned_allocate(own_heap(), alignment, size);
}

/* Its heaps are for one thread at a time, and having them costs every other block: not in its usual build. */
void* peer_heap_new(void) { return NULL; }
void peer_heap_destroy(void* heap) { (void)heap; }
void* peer_heap_malloc(void* heap, size_t size) {
  (void)heap;
  return peer_malloc(size);
}
void* peer_heap_zalloc(void* heap, size_t size) {
  (void)heap;
  return peer_zalloc(size);
}
void* peer_heap_realloc(void* heap, void* block, size_t size) {
  (void)heap;
  return peer_realloc(block, size);
}
