// What an ELF file defines, by its symbols: of those that were not stripped.
#pragma once

#include <string>
#include <vector>

namespace rh::command {

// Well-known allocators that the file at `path` has linked in. Empty for what is no ELF file or cannot be read.
std::vector<std::string> known_allocators_in(const std::string& path);

// Whether the library at `path` is one of reheap's.
bool is_reheap(const std::string& path);

// The whole of a file; empty when it cannot be read.
std::string read_file(const std::string& path);

}  // namespace rh::command
