/* Frees a pointer that no allocator could have given: it is odd. */
#include "crime.h"

int main(void) {
  _Alignas(16) char storage[256] = {0};
  char* block = malloc(100);
  free(hidden(storage + 65));
  return survived(block);
}
