// What each thread has for itself. The library is loaded at the start of the program, so its place is fixed.
#pragma once

#include <cstdint>

namespace recorder {

struct Stream;
extern constinit Stream g_no_stream;  // nothing can be written to it

struct ThreadSlot {
  Stream* stream;
  uint64_t generation;  // of the process: a forked child counts on
  uint32_t number;
  bool ended;
};

extern constinit thread_local ThreadSlot t_slot __attribute__((tls_model("initial-exec"), visibility("hidden")));

inline ThreadSlot& thread_slot() { return t_slot; }
inline Stream* current_stream() { return t_slot.stream; }

}  // namespace recorder
