/* Everything the header declares, used as a consumer would; compiled as C11 and as C++20. */
#include <reheap/reheap.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void count_text(const char* text, size_t length, void* context) {
  (void)text;
  *(size_t*)context += length;
}

static int consume_blocks(void) {
  char* block = (char*)rh_malloc(100);
  char* zero = (char*)rh_calloc(10, 10);
  char* aligned = (char*)rh_aligned_alloc(4096, 10);
  int sound = block && zero && aligned && zero[99] == 0 && (size_t)aligned % 4096 == 0;
  sound = sound && rh_usable_size(block) >= 100 && rh_good_size(100) >= 100;
  sound = sound && rh_owns(block) && !rh_owns(&sound);
  strcpy(block, "kept");
  block = (char*)rh_realloc(block, 100000);
  sound = sound && block && strcmp(block, "kept") == 0;
  rh_free(block);
  rh_free(zero);
  rh_free(aligned);
  return sound;
}

static int consume_heap(void) {
  rh_heap* heap = rh_heap_create();
  char* block = (char*)rh_heap_malloc(heap, 100);
  char* zero = (char*)rh_heap_calloc(heap, 10, 10);
  char* aligned = (char*)rh_heap_aligned_alloc(heap, 128, 10);
  int sound = block && zero && aligned && zero[99] == 0 && (size_t)aligned % 128 == 0;
  strcpy(block, "kept");
  block = (char*)rh_heap_realloc(heap, block, 100000);
  sound = sound && strcmp(block, "kept") == 0;
  rh_heap_destroy(heap);
  heap = rh_heap_create_bound();
  sound = sound && rh_heap_malloc(heap, 100);
  rh_heap_reset(heap);
  sound = sound && rh_heap_malloc(heap, 100);
  rh_heap_destroy(heap);
  return sound;
}

static bool count_block(void* block, size_t usable_size, void* context) {
  (void)usable_size;
  *(size_t*)context += 1;
  return block != NULL;
}

static int consume_more_of_heaps(void) {
  rh_heap* heap = rh_heap_create();
  void* blocks[10];
  size_t visited = 0;
  int sound = rh_heap_alloc_batch(heap, 100, blocks, 10) == 10 && rh_heap_of(blocks[9]) == heap;
  sound = sound && rh_heap_walk(heap, count_block, &visited) && visited == 10;
  rh_free_batch(blocks, 10);
  rh_heap_trim(heap);
  sound = sound && rh_heap_trim(heap) == 0;
  rh_heap_destroy(heap);
  sound = rh_alloc_batch(1000, blocks, 2) == 2 && sound && rh_expand(blocks[0], 1000) >= 1000;
  blocks[1] = rh_aligned_realloc(blocks[1], 256, 2000);
  sound = sound && blocks[1] && (size_t)blocks[1] % 256 == 0;
  rh_free_sized(blocks[0], 1000);
  rh_free_aligned_sized(blocks[1], 256, 2000);
  return sound;
}

static int consume_tags(void) {
  rh_heap* heap = rh_heap_create();
  rh_heap_stats of_heap;
  rh_tag_stats stats[2];
  const rh_tag tag = rh_tag_create("consumed");
  void* block = NULL;
  int sound = tag == 1 && rh_tag_create("consumed") == tag && rh_tag_push(tag) && rh_tag_current() == tag;
#ifdef __cplusplus
  {
    const reheap::TagScope untagged(0);
    sound = sound && rh_tag_current() == 0;
  }
  sound = sound && rh_tag_current() == tag;
#endif
  block = rh_malloc(300000);
  rh_tag_pop();
  memset(stats, 0, sizeof stats);
  stats[0].struct_size = sizeof stats[0];
  sound = sound && block && rh_tag_current() == 0 && rh_tag_stats_get(0, stats, 2) == 2;
  sound = sound && stats[1].in_use >= 300000 && strcmp(stats[1].name, "consumed") == 0;
  sound = sound && rh_tag_limit(tag, 1000000) && !rh_tag_limit(0, 1000000);
  rh_free(block);
  memset(&of_heap, 0, sizeof of_heap);
  of_heap.struct_size = sizeof of_heap;
  rh_heap_limit(heap, 1000000);
  sound = sound && rh_heap_malloc(heap, 500000) && !rh_heap_malloc(heap, 600000);
  sound = sound && rh_heap_stats_get(heap, &of_heap) && of_heap.in_use >= 500000 && of_heap.refused == 1;
  rh_heap_destroy(heap);
  return sound;
}

static int consume_reports(void) {
  rh_stats stats;
  size_t written = 0;
  size_t reported = 0;
  memset(&stats, 0, sizeof stats);
  stats.struct_size = sizeof stats;
  rh_stats_json(count_text, &written);
  rh_report_json(count_text, &reported);
  rh_trim();
  return rh_stats_get(&stats) && stats.reserved > 0 && written > 100 && reported > 100 &&
         rh_option_set("decay_ms", "500") && strcmp(rh_version(), "0.1.0") == 0;
}

int main(void) {
  void* plain = malloc(100);
  const int blocks = consume_blocks();
  const int heap = consume_heap() && consume_more_of_heaps();
  const int tags = consume_tags();
  const int reports = consume_reports();
  /* Beside libreheap-core malloc stays the system's. */
  const int aside = !rh_owns(plain);
  free(plain);
  printf("blocks %d, heap %d, tags %d, reports %d, malloc aside %d\n", blocks, heap, tags, reports, aside);
  return blocks && heap && tags && reports && aside ? 0 : 1;
}
