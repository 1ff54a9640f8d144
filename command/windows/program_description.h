// What can be told of a program before it has run.
#pragma once

#include "redirect/pe/image.h"

#include <string>
#include <string_view>
#include <vector>

namespace rh::command {

// The section that a patched file has and no other (patch.h).
inline constexpr char kPatchSection[IMAGE_SIZEOF_SHORT_NAME + 1] = ".rhpatch";

struct Imports {
  std::string library;                 // as it is named there
  std::vector<std::string> functions;  // those of a heap
};

struct ProgramDescription {
  std::string architecture;
  std::string runtime;  // the C runtime, with its version
  std::vector<Imports> allocation;
  std::string heap_type;  // of Windows' heaps, as its manifest asks for; "": as Windows chooses
  bool control_flow_guard = false;
  bool movable = false;  // by ASLR
  std::string kind;      // "native", "Go", ".NET", "Cygwin", with "packed by UPX"
  bool patched = false;  // imports reheap.dll for good
};

// `program`: its file, beside which C runtimes of its own may lie.
ProgramDescription describe(const rh::pe::Image& image, const std::wstring& program);

// What a program was packed by, or "".
std::string packer_of(const rh::pe::Image& image);

bool has_section(const rh::pe::Image& image, std::string_view start);

std::string architecture_name(WORD machine);

}  // namespace rh::command
