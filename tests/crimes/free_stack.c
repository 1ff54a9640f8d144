/* Frees a local variable. */
#include "crime.h"

int main(void) {
  _Alignas(16) char storage[256] = {0};
  char* block = malloc(100);
  free(hidden(storage + 64));
  return survived(block);
}
