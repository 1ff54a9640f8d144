// A program's file that imports reheap.dll for good, and how it becomes what it was. Bytes in, bytes out: nothing here
// touches a disk.
//
// The file gets one section, `.rhpatch`, at its end. Nothing that is there moves:
//
//   the headers     lead to the list of imports in that section; one section more; size of image; checksum; no
//                   bound imports and no signature, which would both be untrue
//   the rest        every byte as it was, at its place
//   padding         to the file's alignment
//   `.rhpatch`      PatchBlock, the list of imports (ours first), the headers as they were
//   appended data   once more where the file had some, for programs that look for it behind the last section or before
//                   the end; those that know its place find it there
#pragma once

#include "program_file.h"

namespace rh::command {

struct PatchRequest {
  std::string library = "reheap.dll";  // as the import names it
  bool allow_unsigned = false;         // a signature may be lost
  bool allow_library = false;          // a DLL may be patched
};

struct Patched {
  std::string bytes;
  bool was_signed = false;
  bool has_appended = false;
};

// Throws Failure when it cannot be done safely.
Patched patched(std::string bytes, const PatchRequest& request);

struct Unpatched {
  std::string bytes;
  // What it was before; or something of the program's own was changed since, and stays so.
  bool exact = true;
  bool was_signed_since = false;
};

// Throws Failure when it was not patched, or was changed since in a way that would be lost.
Unpatched unpatched(std::string bytes);

}  // namespace rh::command
