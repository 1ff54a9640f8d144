/* Frees a variable that no allocator made. */
#include "crime.h"

static _Alignas(16) char storage[256];

int main(void) {
  char* block = malloc(100);
  free(hidden(storage + 64));
  return survived(block);
}
