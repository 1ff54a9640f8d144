/* Commits nothing: the control that shows the runner tells crime from innocence. */
#include "crime.h"

int main(void) {
  char* block = malloc(8 * MIB);
  block = realloc(hidden(block), 16 * MIB);
  free(block);
  return survived(block);
}
