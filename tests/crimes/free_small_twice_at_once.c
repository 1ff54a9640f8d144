/* Frees a small block twice, of a class that the program has hardly used. */
#include "crime.h"

int main(void) {
  char* other = malloc(48);
  char* block = malloc(48);
  free(block);
  free(hidden(block));
  return survived(other);
}
