// Puts reheap in the place of a C runtime's allocation functions, whole families or none (names.h), and remembers what
// was done and why something was left.
//
// Everything here runs under the loader's lock: when a DLL is attached, or told of a DLL that came or went.
#pragma once

#include <cstddef>

#include "base/text.h"
#include "entry/windows/crt.h"

namespace rh::redirect {

// A DLL as the loader names it.
struct Module {
  const void* base;
  const wchar_t* name;  // without its folder; `length` characters
  size_t length;
};

// Whether it is a C runtime that `replace` has not seen.
bool is_new_runtime(const Module& module);

// Replaces what such a module has. True when something was replaced.
bool replace(const Module& module);

// The module goes, and its blocks with it. Blocks of ours that it handed out live on.
void forget(const void* base);

// The runtime that most of the process uses: the universal one, or else the first that was replaced. Without any, one
// that has no functions. May be called at any time.
const crt::Host& main_host();

// Whether there is such a runtime. May be called at any time.
bool has_replaced();

// One line for each C runtime: what was replaced, what was left and why.
void describe(Text& text);
// The line of one.
void describe(Text& text, const void* base);

// Calls tell(line) for each of those of which something was left. False when there is none.
bool describe_left(void (*tell)(const Text& line));

}  // namespace rh::redirect
