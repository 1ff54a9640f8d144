#pragma once

namespace rh::waits {

// Looks the C library's waits up; where this is called, ours stand in their place.
void resolve();

}  // namespace rh::waits
