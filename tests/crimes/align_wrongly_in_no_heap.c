/* Asks the heap that could not be made for an alignment that is none. */
#include "crime.h"

int main(void) { return survived(rh_heap_aligned_alloc(hidden(NULL), (size_t)(uintptr_t)hidden((void*)3), 1)); }
