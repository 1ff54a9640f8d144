// Where the library and the launcher for another architecture lie, and paths as they are needed for that.
#pragma once

#include "redirect/pe/image.h"

namespace rh::inject {

constexpr size_t kLongestPath = 1024;

struct Path {
  wchar_t text[kLongestPath] = {};

  // False, and empty, when it does not fit.
  bool set(const wchar_t* path);
  bool append(const wchar_t* part);
  bool empty() const { return text[0] == 0; }
  // Cut before the last backslash or slash.
  void to_folder();
};

// The file of a module of this process; nullptr for the program.
bool module_path(HMODULE module, Path& path);

// The library, or the launcher, for a machine among those that lie with `beside`, which is one of them:
//
//   reheap.dll reheap.exe                            the architecture installed first
//   reheap32.dll reheap32.exe, reheap64.dll …        another one
//   reheap-hardened.dll reheap32-hardened.dll …      the libraries of the hardened build; beside one of them, those
//
// The first that is made for that machine. In that one folder alone: who can write there can replace what runs already.
bool find_part(const wchar_t* beside, pe::FileKind part, WORD machine, Path& found);

// Whether a library is of the hardened build, by its name.
bool is_hardened(const wchar_t* library);

// A library among those that lie with `beside`, of the build that is asked for.
bool find_library(const wchar_t* beside, bool hardened, WORD machine, Path& found);

}  // namespace rh::inject
