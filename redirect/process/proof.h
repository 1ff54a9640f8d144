// Into which processes the library is known to load. One that has the same file, the same architecture and the same
// rights as one that it came into can have it too; where any of these differs it has to be tried.
#pragma once

#include "library.h"

namespace rh::inject {

// What decides whether a library loads into a process, as far as the process is not asked.
struct Kind {
  WORD machine = 0;  // 0: nothing can be told of it
  bool own_rights = false;
  FileIdentity library = {};  // for that machine
};

// `library` is this process's own.
Kind kind_of(HANDLE process, const wchar_t* library);

bool is_shown(const Kind& kind);
void show(const Kind& kind);

}  // namespace rh::inject
