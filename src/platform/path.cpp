#include "platform/path.h"

#include "platform/platform.h"

namespace rh {

bool set_path(const char* value, OptionPath* path) {
  size_t length = __builtin_strlen(value);
  if (length >= kPathMost) return false;
  __builtin_memcpy(path->text, value, length + 1);
  return true;
}

void expand(const char* path, Text& expanded) {
  for (; *path != 0; ++path) {
    if (path[0] == '%' && path[1] == 'p') {
      expanded.decimal(platform::process_id());
      ++path;
    } else {
      expanded << *path;
    }
  }
  expanded << '\0';
}

bool has_process_id(const char* path) {
  for (; *path != 0; ++path)
    if (path[0] == '%' && path[1] == 'p') return true;
  return false;
}

}  // namespace rh
