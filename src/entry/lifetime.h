#pragma once

namespace rh::lifetime {

// An archive gives only what is asked for: who calls this gets the library's start and end along.
const void* anchor();

}  // namespace rh::lifetime
