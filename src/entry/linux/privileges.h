#pragma once

namespace rh::privileges {

// Where this is called, the library's functions for sandboxes and name spaces stand in the C library's place.
void stand_in();

}  // namespace rh::privileges
