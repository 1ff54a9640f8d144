// The option that limits memory, as it is written.
#pragma once

#include "base/text.h"
#include "heap/limit.h"

namespace rh::limit_option {

inline constexpr const char* kAllowed =
    "off, auto, a size of 1M or more (256M, 2G), 1% to 100%, or soft:SIZE,hard:SIZE; and end behind a comma";

// False when that is no limit.
bool parse(const char* text, limit::Rule* rule);

// The same the other way round; ends with a zero.
void describe(const limit::Rule& rule, Text& text);

}  // namespace rh::limit_option
