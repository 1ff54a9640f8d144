// Not reheap: it has the names that the program asks for, and replaces nothing. Each block must be missed.
#include <reheap/reheap.h>

__declspec(dllexport) bool rh_owns(const void* pointer) { return pointer == NULL; }

__declspec(dllexport) bool rh_stats_get(rh_stats* stats) { return stats != NULL; }
