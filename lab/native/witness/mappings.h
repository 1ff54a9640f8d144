/* Which code asked for which anonymous memory of a process: kept in the witness's own data, where the runner reads it
 * from outside. C and C++ alike.
 *
 * Only calls that go through the loader's tables are seen: not those within the C library (its malloc, the stacks of
 * threads), and not system calls that a program makes itself. */
#pragma once

#include <stdint.h>

#define REHEAP_MAPPINGS_MAGIC "reheap:mappings"
#define REHEAP_MOST_MAPPINGS 16384

/* [start, end), and where the call came from. */
typedef struct {
  uint64_t start, end, caller;
} ReheapMapping;

/* Sorted by address; they do not overlap. */
typedef struct {
  char magic[16];
  uint64_t version; /* odd while they are being changed */
  uint64_t count;
  uint64_t mappings; /* the address of the first */
} ReheapMappings;
