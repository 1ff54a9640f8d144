// A list as text.
#pragma once

#include <string>

namespace rh::command {

template <class List, class TextOf> std::string joined(const List& list, const char* between, TextOf text_of) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : between) + text_of(item);
  return text;
}

}  // namespace rh::command
