#include "platform/path.h"

#include "platform/platform.h"

namespace rh {

bool fits(const char* path) {
  constexpr size_t kLongestId = 10;
  size_t length = 0, expanded = 0;
  for (; path[length] != 0; ++length) expanded += path[length] == '%' && path[length + 1] == 'p' ? kLongestId - 1 : 1;
  return length < kPathMost && expanded < sizeof(Text::Buffer);
}

bool set_path(const char* value, OptionPath* path) {
  if (!fits(value)) return false;
  __builtin_memcpy(path->text, value, __builtin_strlen(value) + 1);
  return true;
}

namespace {

bool is_word(const char* value, const char* word) {
  auto lower = [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  };
  while (*word != 0 && lower(*value) == *word) ++value, ++word;
  return *word == 0 && *value == 0;
}

bool is_any_of(const char* value, const char* const* words, size_t count) {
  for (size_t at = 0; at < count; ++at)
    if (is_word(value, words[at])) return true;
  return false;
}

}  // namespace

bool set_file(const char* value, OptionPath* path) {
  constexpr const char* kNone[] = {"0", "off"};
  constexpr const char* kUnclear[] = {"1", "on", "yes", "no", "true", "false"};
  if (is_any_of(value, kUnclear, sizeof(kUnclear) / sizeof(*kUnclear))) return false;
  return set_path(is_any_of(value, kNone, sizeof(kNone) / sizeof(*kNone)) ? "" : value, path);
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
