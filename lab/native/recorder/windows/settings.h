// What `reheap record` asks for, in the environment: as on Linux.
#pragma once

#include <cstdint>

#include "trace/format.h"

namespace recorder {

inline constexpr unsigned kLongestPath = 1024;

struct Settings {
  wchar_t path[kLongestPath];  // REHEAP_RECORD: the first process's file; empty: nothing is recorded
  uint64_t limit;              // REHEAP_RECORD_LIMIT: bytes a file may have
  bool children;               // REHEAP_RECORD_CHILDREN: not 0
  uint32_t layers;             // REHEAP_RECORD_LAYERS: crt, heap or both; as flags of the trace
};

void read_settings();
const Settings& settings();

// The file's name with ".PID" or ".PID.COUNT" before its ".rht".
void name_of_child(wchar_t (&name)[kLongestPath], const wchar_t* path, unsigned long process, unsigned count);

}  // namespace recorder
