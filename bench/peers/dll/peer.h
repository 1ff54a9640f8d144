/* Another allocator, as the layers see it: mimalloc.c and rpmalloc.c provide this, each with the whole allocator in it.
 *
 * Any pointer may be asked about. Sizes are the allocator's usable ones: it remembers no exact ones. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

extern const char peer_name[];

/* Under the loader's lock, before anything is replaced: it may still use the system's heap. */
void peer_start(void);
void peer_thread_ends(void);

int peer_owns(const void* block);
void* peer_malloc(size_t size);
void* peer_zalloc(size_t size);
/* 0 when the block is not its own. */
int peer_free(void* block);

/* Of its own blocks only. */
size_t peer_size(const void* block);
void* peer_realloc(void* block, size_t size);
int peer_fits(void* block, size_t size); /* without moving */

/* So that `offset` bytes behind it the block is aligned. NULL where the allocator cannot. */
void* peer_aligned(size_t size, size_t alignment, size_t offset);

/* A heap of its own that all threads may use, and that frees all at once. NULL: it has none. */
void* peer_heap_new(void);
void peer_heap_destroy(void* heap);
void* peer_heap_malloc(void* heap, size_t size);
void* peer_heap_zalloc(void* heap, size_t size);
void* peer_heap_realloc(void* heap, void* block, size_t size);

#ifdef __cplusplus
}
#endif
