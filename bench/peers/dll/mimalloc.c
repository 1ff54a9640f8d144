/* mimalloc, in one file with what the layers call, so that its fast paths are part of these. It keeps its own way to a
 * thread's heap (a slot of TlsAlloc's), and hears of threads' ends by the DLL's entry point. */
#include "peer.h"

/* mimalloc's one file; the folders are given to the compiler. */
#include <static.c>

const char peer_name[] = "mimalloc";

void peer_start(void) { _mi_auto_process_init(); }
void peer_thread_ends(void) { _mi_thread_done(NULL); }

int peer_owns(const void* block) { return _mi_safe_ptr_page(block) != NULL; }
void* peer_malloc(size_t size) { return mi_malloc(size); }
void* peer_zalloc(size_t size) { return mi_zalloc(size); }

/* As mi_free does it; the one look at the page map also tells whose the block is. */
int peer_free(void* block) {
  mi_page_t* page = _mi_safe_ptr_page(block);
  if (page == NULL) return 0;
  mi_free_ex(block, NULL, page);
  return 1;
}

size_t peer_size(const void* block) { return mi_usable_size(block); }
void* peer_realloc(void* block, size_t size) { return mi_realloc(block, size); }
int peer_fits(void* block, size_t size) { return mi_expand(block, size) != NULL; }

void* peer_aligned(size_t size, size_t alignment, size_t offset) {
  return mi_malloc_aligned_at(size, alignment, offset);
}

void* peer_heap_new(void) { return mi_heap_new(); }
void peer_heap_destroy(void* heap) { mi_heap_destroy(heap); }
void* peer_heap_malloc(void* heap, size_t size) { return mi_heap_malloc(heap, size); }
void* peer_heap_zalloc(void* heap, size_t size) { return mi_heap_zalloc(heap, size); }
void* peer_heap_realloc(void* heap, void* block, size_t size) { return mi_heap_realloc(heap, block, size); }
