// Replaces one function of the system's, for the life of the process.
#pragma once

namespace rh::redirect {

// Of kernelbase or, where older systems have it, of kernel32. `original` is what to call for what it did, and is set
// before anyone can come to the replacement. NULL, or why it was left.
const char* replace_system_function(const char* name, const void* replacement, const void** original);

}  // namespace rh::redirect
