// For programs that reheap is linked into.
#include "support/windows/linked_names.h"

#include "reheap/reheap.h"

namespace contract {

#define LINKED(name) {#name, reinterpret_cast<void*>(&::name)}

std::span<const LinkedName> linked_names() {
  static const LinkedName all[] = {
      LINKED(rh_malloc),
      LINKED(rh_calloc),
      LINKED(rh_realloc),
      LINKED(rh_aligned_alloc),
      LINKED(rh_free),
      LINKED(rh_usable_size),
      LINKED(rh_good_size),
      LINKED(rh_owns),
      LINKED(rh_heap_create),
      LINKED(rh_heap_destroy),
      LINKED(rh_heap_malloc),
      LINKED(rh_heap_calloc),
      LINKED(rh_heap_realloc),
      LINKED(rh_heap_aligned_alloc),
      LINKED(rh_heap_reset),
      LINKED(rh_heap_create_bound),
      LINKED(rh_heap_create_in),
      LINKED(rh_heap_create_near),
      LINKED(rh_trim),
      LINKED(rh_stats_get),
      LINKED(rh_stats_json),
      LINKED(rh_report_json),
      LINKED(rh_option_set),
      LINKED(rh_profile_start),
      LINKED(rh_profile_stop),
      LINKED(rh_profile_write),
      LINKED(rh_version),
      LINKED(rh_limit_set),
      LINKED(rh_limit_get),
      LINKED(rh_limit_notify),
      LINKED(rh_heap_limit),
      LINKED(rh_heap_stats_get),
      LINKED(rh_tag_create),
      LINKED(rh_tag_push),
      LINKED(rh_tag_pop),
      LINKED(rh_tag_current),
      LINKED(rh_tag_limit),
      LINKED(rh_tag_stats_get),
      LINKED(rh_aligned_realloc),
      LINKED(rh_alloc_batch),
      LINKED(rh_expand),
      LINKED(rh_free_aligned_sized),
      LINKED(rh_free_batch),
      LINKED(rh_free_sized),
      LINKED(rh_heap_alloc_batch),
      LINKED(rh_heap_of),
      LINKED(rh_heap_trim),
      LINKED(rh_heap_walk),
  };
  return all;
}

}  // namespace contract
