/* Frees a small block twice, with nothing between. */
#include "crime.h"

int main(void) {
  char* block = malloc(48);
  free(block);
  free(hidden(block));
  return survived(block);
}
