// For processors whose frames the recorder cannot follow.

#include "linux/stacks/source.h"

namespace recorder {

bool can_follow_frames() { return false; }

StackSource begin_stacks(uint32_t) { return {}; }

Next sampled(const Next& found) { return found; }

void note_unload() {}

}  // namespace recorder
