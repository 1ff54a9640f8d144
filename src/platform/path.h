// Paths that options give.
#pragma once

#include "base/text.h"

namespace rh {

inline constexpr size_t kPathMost = 480;

struct OptionPath {
  char text[kPathMost];
};

// Whether it is shorter than that, and fits a Text with each %p expanded.
bool fits(const char* path);

// False, and nothing set, when it does not fit.
bool set_path(const char* value, OptionPath* path);

// The same of an option's value: 0 and off are no file, nor are other words that say yes or no, for which it is false.
bool set_file(const char* value, OptionPath* path);

// %p in a path stands for the process's id, so that children do not write over their parent's file. Ends with a zero.
void expand(const char* path, Text& expanded);

bool has_process_id(const char* path);

}  // namespace rh
