// For programs made by Microsoft's compiler, or for its ABI: the new-handler is the C runtime's, and the exception is
// thrown by the part of the C++ runtime that every program links.
#include "entry/quietly.h"

extern "C" int _callnewh(std::size_t size);
[[noreturn]] void __cdecl __scrt_throw_std_bad_alloc();

namespace rh {

void throw_bad_alloc() { __scrt_throw_std_bad_alloc(); }

bool call_new_handler(std::size_t size) { return _callnewh(size) != 0; }

}  // namespace rh
