// The library's account of itself, as JSON.
#pragma once

#include "base/text.h"

namespace rh::describe {

// Who serves malloc in this process, version, build, options, realm, and what was replaced.
void process(Text& text);

// Adds what the library has put itself in the place of. Set by the library that does, before it tells of itself.
using Describe = void (*)(Json& json);
extern constinit Describe g_replaced;

// Whether it did so anywhere; null where the library has malloc by its name. Set together with that.
using Serves = bool (*)();
extern constinit Serves g_serves;

void statistics(Text& text);

const char* version();

}  // namespace rh::describe
