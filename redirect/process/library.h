// What can be told of a library's file before a process loads it.
#pragma once

#include <windows.h>

#include <stddef.h>

namespace rh::inject {

struct LibraryFile {
  bool whole = false;    // it can be read, and has the checksum that its linker gave it, if any
  bool answers = false;  // it says when it is in (arrive(), in imports.h)
  // What it says of itself, which some processes ask for.
  bool guarded = false;            // it has a table for control-flow guard
  bool for_shadow_stacks = false;  // it may run where returns are checked
};

LibraryFile look_at_library(const wchar_t* path);

// As linkers and signing tools compute it: of all of the file but the checksum itself.
DWORD checksum(const void* file, size_t size, size_t checksum_at);

// Tells a file from what may stand in its place later. All zero where it cannot be opened.
struct FileIdentity {
  DWORD volume, index_high, index_low, size_high, size_low;
  FILETIME written;

  bool operator==(const FileIdentity& other) const;
};

FileIdentity identity_of(const wchar_t* path);

}  // namespace rh::inject
