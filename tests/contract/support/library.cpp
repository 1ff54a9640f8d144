#include "support/library.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace contract {
namespace {

Mode read_mode() {
  const char* text = std::getenv("CONTRACT_MODE");
  if (text && std::strcmp(text, "system") == 0) return Mode::system;
  if (text && std::strcmp(text, "preload") == 0) return Mode::preload;
  if (text && std::strcmp(text, "shared") == 0) return Mode::shared;
  if (text && std::strcmp(text, "archive") == 0) return Mode::archive;
  std::fprintf(stderr, "CONTRACT_MODE=%s is not system, preload, shared or archive\n", text ? text : "(unset)");
  std::_Exit(2);
}

}  // namespace

Mode mode() {
  static const Mode known = read_mode();
  return known;
}

bool is_hardened() { return std::getenv("CONTRACT_HARDENED") != nullptr; }

}  // namespace contract
