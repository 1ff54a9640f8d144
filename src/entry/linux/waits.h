#pragma once

namespace rh::waits {

// Looks the C library's waits up; where this is called, ours stand in their place.
void resolve();

// Of these, those that have no time limit (endless_waits.cpp).
void resolve_endless();

}  // namespace rh::waits
