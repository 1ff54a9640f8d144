#pragma once

namespace rh::privileges {

// Where this is called, the library's functions for sandboxes and name spaces stand in the C library's place.
void stand_in();

}  // namespace rh::privileges

namespace rh::credentials {

// The same for its functions that change users and groups. Looks some up: takes the loader's locks.
void stand_in();

}  // namespace rh::credentials
