// The functions about the heap as a whole, and that memory which is freed comes back.
#include "checks.h"

namespace {

struct HeapInfo {  // _HEAPINFO
  int* entry;
  size_t size;
  int use;
};
constexpr int kHeapOk = -2;

void check_walk(const Twins& twins) {
  void* block = twins.malloc(12345);
  Line line("%s_heapwalk", twins.prefix);
  HeapInfo info = {};
  const char* found = "not listed";
  int result;
  while ((result = twins.heapwalk(&info)) == kHeapOk)
    if (info.entry == block) found = info.use == 1 && info.size == 12345 ? "in use, exact" : "listed";
  line.say(" block %s, end %d", found, result);
  twins.free(block);
}

// What no runtime takes well, and reheap does.
void free_by_the_other(const Twins& twins, void* aligned, void* plain) {
  if (!reheap_owns(aligned) || !reheap_owns(plain)) return;
  twins.free(aligned);
  twins.aligned_free(plain);
}

}  // namespace

void check_heap(const Twins& twins) {
  if (twins.heapchk != nullptr) Line("%s_heapchk", twins.prefix).say(" %d", twins.heapchk());
  if (twins.heapmin != nullptr) Line("%s_heapmin", twins.prefix).say(" %d", twins.heapmin());
  if (twins.heapwalk != nullptr) check_walk(twins);
  if (twins.heap_handle != nullptr) {
    HANDLE heap = reinterpret_cast<HANDLE>(twins.heap_handle());
    const char* which = heap == nullptr ? "null" : heap == GetProcessHeap() ? "the process's" : "its own";
    Line("%s_get_heap_handle", twins.prefix).say(" %s", which);
  }
}

void check_released(const Twins& twins) {
  if (!reheap_loaded()) return;
  size_t before = reheap_in_use();
  for (int i = 0; i < 100; i++) {
    twins.free(twins.malloc(kMiB));
    twins.free(twins.realloc(twins.calloc(1, kMiB), 2 * kMiB));
    twins.realloc(twins.malloc(kMiB), 0);
    if (twins.aligned_malloc == nullptr) continue;
    twins.aligned_free(twins.aligned_malloc(kMiB, 4096));
    twins.aligned_free(twins.offset_realloc(twins.offset_malloc(kMiB, 64, 8), 2 * kMiB, 64, 8));
    twins.aligned_realloc(twins.aligned_malloc(kMiB, 64), 0, 64);
    free_by_the_other(twins, twins.aligned_malloc(kMiB, 4096), twins.malloc(kMiB));
  }
  size_t after = reheap_in_use();
  if (after > before + 8 * kMiB) fail("%Iu bytes were freed and are still in use", after - before);
}
