// Sets an environment variable of this process.
#pragma once

#include <stdlib.h>

namespace rh {

#ifdef _WIN32
inline void set_environment(const char* name, const char* value) { _putenv_s(name, value); }
#else
inline void set_environment(const char* name, const char* value) { setenv(name, value, 1); }
#endif

}  // namespace rh
