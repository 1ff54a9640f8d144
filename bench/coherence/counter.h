// What the entry points of tsan.cpp report: every access of the allocator's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lines.h"

namespace coherence {

// `place` is the instruction behind the access.
void note_access(uintptr_t address, size_t size, lines::Access kind, uintptr_t place);

}  // namespace coherence
