#pragma once

namespace rh::pages {

// Where this is called, the library's functions for pages stand in the C library's place.
void stand_in();

}  // namespace rh::pages
