#include <malloc.h>
#include <stdlib.h>

#include "checks.h"

// The C runtime beside the heap functions: what its suite looks at more closely (crt/conformance).
void check_crt() {
  for (size_t size : {size_t{0}, size_t{1}, size_t{100}, size_t{5000}, 100 * kKiB, 2 * kMiB}) {
    Line line("malloc %Iu", size);
    void* block = observed(line, [&] { return malloc(size); });
    line.say(block == nullptr ? " null" : " block");
    line.say(_msize(block) == size || size == 0 ? " sized" : " size=%Iu", _msize(block));
    fill(block, size, 1);
    block = observed(line, [&] { return realloc(block, size + 3000); });
    line.say(holds(block, size, 1) && _msize(block) == size + 3000 ? " kept" : " NOT KEPT");
    observed(line, [&] {
      free(block);
      return 0;
    });
    block = observed(line, [&] { return calloc(1, size); });
    line.say(all_zero(block, 0, size) ? " zero" : " NOT ZERO");
    free(block);
  }
  Line line("blocks of both");
  static void *of_crt[1000], *of_heap[1000];
  bool right = true;
  for (unsigned i = 0; i < 1000; ++i) {
    of_crt[i] = malloc(i + 1);
    of_heap[i] = HeapAlloc(GetProcessHeap(), 0, i + 1);
    fill(of_crt[i], i + 1, i);
    fill(of_heap[i], i + 1, i + 1);
  }
  for (unsigned i = 0; i < 1000; ++i) {
    right = right && holds(of_crt[i], i + 1, i) && holds(of_heap[i], i + 1, i + 1);
    right = right && _msize(of_crt[i]) == i + 1 && HeapSize(GetProcessHeap(), 0, of_heap[i]) == i + 1;
    free(of_crt[i]);
    right = right && HeapFree(GetProcessHeap(), 0, of_heap[i]);
  }
  line.say(right ? " right" : " WRONG");
}
