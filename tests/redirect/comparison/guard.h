#pragma once

#include <windows.h>

// A call that may end in an exception (a fault, a C++ throw, a function that Wine only has by name):
//
//   Raised raised = guarded([&] { … });
//
// There is no C++ runtime here to catch one: the first handler in line jumps out, or, when asked, lets a continuable
// one go on.
struct Raised {
  DWORD code = 0;  // 0 when the call returned and nothing was raised
  bool continuable = false;
};

enum class Then { jump_out, go_on };

using GuardedCall = void(void* context);
Raised run_guarded(GuardedCall* call, void* context, Then then);

template <typename F> Raised guarded(F call, Then then = Then::jump_out) {
  return run_guarded([](void* context) { (*static_cast<F*>(context))(); }, &call, then);
}

// Anything that escapes a guard is told, and ends the program, without a debugger being asked.
void install_guard();
