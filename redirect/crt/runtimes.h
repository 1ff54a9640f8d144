// The DLLs that are a C runtime.
#pragma once

#include <cstddef>

namespace rh::redirect {

// Whether a DLL of this name, without its folder and in any case, is a C runtime.
bool is_runtime(const wchar_t* name, size_t length);

}  // namespace rh::redirect
