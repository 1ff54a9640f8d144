#pragma once

#include "comparison/guard.h"
#include "comparison/line.h"

constexpr DWORD kUntouched = 12345;

// Tells what a call left in the last error, unless it left it alone, and what it raised.
void tell_effects(Line& line, DWORD error, const Raised& raised);

// One call, its last error and exceptions told by the line. Gives what a call gives that raised one: nothing.
template <typename F>
auto observed(Line& line, F call) {
  decltype(call()) result{};
  SetLastError(kUntouched);
  Raised raised = guarded([&] { result = call(); });
  DWORD error = GetLastError();
  tell_effects(line, error, raised);
  return result;
}
