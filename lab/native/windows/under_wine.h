// Whether this Windows is Wine, which answers some questions with a number that is another's, or nobody's: what it does
// not know is left out by knowing it is Wine, never by the look of a number.
#pragma once

#include <windows.h>

namespace lab {

inline bool under_wine() {
  static const bool found = GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version") != nullptr;
  return found;
}

}  // namespace lab
