// What `reheap record` asks for, in the environment.
#pragma once

#include <climits>
#include <cstdint>

namespace recorder {

struct Settings {
  char path[PATH_MAX];   // REHEAP_RECORD: the first process's file; empty: nothing is recorded
  uint64_t limit;        // REHEAP_RECORD_LIMIT: bytes a file may have
  bool children;         // REHEAP_RECORD_CHILDREN: not 0
  bool stacks;           // REHEAP_RECORD_STACKS is set: "all", or
  uint32_t stack_bytes;  // the bytes from one allocation with a stack to the next, on average; 0: all
};

// Read once; a child made by fork keeps them, whatever became of the environment.
const Settings& settings();

// The file's name with ".PID" or ".PID.COUNT" before its ".rht".
void name_of_child(char (&name)[PATH_MAX], const char* path, long process, int count);

}  // namespace recorder
