// What the library holds, gathered from its books when asked.
#pragma once

#include "heap/guards.h"
#include "heap/tags.h"

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

// Of one tag, or of all that is untagged.
struct TagFigures {
  size_t held;            // in slabs and large blocks
  size_t in_use, blocks;  // in blocks handed out, those in threads' bins included
};
using ByTag = TagFigures[tags::kMost + 1];

// Of all heaps that programs made and have not destroyed.
struct OwnHeaps {
  size_t count, held;
};
OwnHeaps own_heaps();

// A picture taken while others go on: each figure is right for some moment during the call. Those by tag, if wanted,
// are from the same look: they add up to the whole.
void gather(Figures* figures, ByTag* by_tag = nullptr);

}  // namespace rh::stats
