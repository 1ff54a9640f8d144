// What the library holds, gathered from its books when asked.
#pragma once

#include "heap/guards.h"

namespace rh::stats {

struct ClassFigures {
  size_t slabs, blocks, in_use;
};

struct Figures {
  size_t reserved, metadata;
  Arena::Figures arena;
  size_t in_use;  // bytes in blocks handed out, those in threads' bins included
  ClassFigures classes[size_class::kCount];
  size_t large_blocks, large_bytes;
  guards::Figures guards;
  size_t heaps, refills, slabs_taken, marks, remote_frees, remote_batches;
};

// A picture taken while others go on: each figure is right for some moment during the call.
void gather(Figures* figures);

}  // namespace rh::stats
