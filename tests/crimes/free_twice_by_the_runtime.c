/* Frees a small block twice, with another freed between: what a C runtime's heap refuses at once. */
#include "crime.h"

int main(void) {
  char* block = malloc(100);
  char* other = malloc(100);
  free(block);
  free(other);
  free(hidden(block));
  return survived(block);
}
