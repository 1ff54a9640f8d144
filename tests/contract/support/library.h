// Which heap the program runs on, and its names looked up the way any program would find them.
#pragma once

#include <cstddef>
#include <string>

#include "reheap/reheap.h"

namespace contract {

// How the library under test was brought into this process, from CONTRACT_MODE. `system` is the control that shows the
// tests ask for nothing that the C library itself does not provide.
enum class Mode { system, preload, shared, archive };

Mode mode();
inline bool on_reheap() { return mode() != Mode::system; }

// Whether it is the hardened build, by CONTRACT_HARDENED: that does not allow what others do.
bool is_hardened();

// `count` rounds where the library is preloaded, a quarter of them in the other modes, which run the same code.
inline int rounds(int count) { return mode() == Mode::preload ? count : (count + 3) / 4; }

std::string real_path(const std::string& path);

// The object that must serve malloc in this mode, as a real path.
std::string expected_server();
// The object that contains the code of `function`, as a real path; empty when there is none.
std::string server_of(const void* function);

// The function a program finds by this name; null when there is none. Looked up, because a preloaded library's names
// beyond the C library's are not known when the program is linked.
void* find_name(const char* name);

template <class Function> Function* find(const char* name) { return reinterpret_cast<Function*>(find_name(name)); }

#define CONTRACT_FIND(name) ::contract::find<decltype(::name)>(#name)

}  // namespace contract
