/* A program beside whose malloc the core is linked. */
#include <reheap/reheap.h>

int main(void) {
  void* block = rh_malloc(10);
  rh_free(block);
  return block == 0;
}
