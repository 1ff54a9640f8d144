// A program that ends itself by TerminateProcess tells no DLL of it. Where statistics are wanted, they are written
// there.
#pragma once

namespace rh::redirect {

// Replaces TerminateProcess for the life of the process: the library has to stay. NULL, or why it was left.
const char* watch_termination();

}  // namespace rh::redirect
