/* Allocates from the heap that could not be made. */
#include "crime.h"

int main(void) { return survived(rh_heap_calloc(hidden(NULL), 10, 10)); }
