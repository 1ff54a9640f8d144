// System calls without the C library. Failures are negative error numbers.
#pragma once

#include "common/text.h"

#include <cstdint>

namespace rh::command::kernel {

// What is asked about a file.
struct Status {
  std::uint32_t mode = 0;
  std::uint32_t user = 0;
  std::uint32_t group = 0;
  std::uint64_t size = 0;
};

// Paths end in a zero.
long status(const char* path, Status& status);
long may_execute(const char* path);  // 0, for the effective ids
// For reading; closed on exec, so that the program gets no descriptor of ours.
long open(const char* path);
void close(long file);
long size(long file, std::uint64_t& bytes);
// Reads until `size` bytes, the end or an error; gives how many.
std::size_t read(long file, std::uint64_t offset, void* to, std::size_t size);
// Of a folder that is open, the next part of what is in it; 0 at its end. linux_dirent64 of getdents64(2).
long read_folder(long folder, void* to, std::size_t size);
bool has_attribute(const char* path, const char* name);
bool mounted_nosuid(const char* path);
Str read_link(const char* path);  // empty on failure
Str working_directory();          // empty on failure
bool privileges_are_fixed();      // PR_SET_NO_NEW_PRIVS
std::uint32_t user();
std::uint32_t effective_user();
std::uint32_t group();
std::uint32_t effective_group();
void* map(std::size_t size);  // nullptr on failure
long execute(const char* path, char* const* arguments, char* const* environment);
[[noreturn]] void end(int status);

}  // namespace rh::command::kernel
