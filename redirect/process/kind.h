// What kind of program an image is, as far as a heap is concerned.
#pragma once

#include "redirect/pe/image.h"

namespace rh::inject {

// Only .NET code: the runtime makes its own heap, and the loader does not look at such an image's imports.
bool is_managed(const pe::Image& image);

// Made by Go's linker, whose runtime takes its memory from the OS.
bool is_go(const pe::Image& image);

// Built against Cygwin's DLL, or MSYS2's, which is one. Its malloc lies in there, and its fork copies a process into
// another one, which has to have the same places free.
bool is_cygwin(const pe::Image& image);

// Whether a DLL, as it is named in imports, is Cygwin's.
bool is_cygwin_library(const char* name);

// The DLLs' names, and NULL.
extern const wchar_t* const kCygwinLibraries[];

// Whether an imported name is a function of a heap that reheap can serve.
bool is_allocation(const char* name);
bool imports_allocation(const pe::Image& image);

}  // namespace rh::inject
