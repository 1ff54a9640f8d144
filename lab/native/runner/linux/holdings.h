// Who mapped what is resident in a process: the files whose code called mmap or sbrk for it, as the witness noted.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace runner {

using Mapped = std::map<std::string, std::int64_t>;  // KiB, by the caller's file

// Nothing when the process has no witness. The kernel walks all its pages for this.
std::optional<Mapped> mapped_kib(pid_t process);

// What is resident and no file's; 0 when the process has gone.
std::int64_t private_kib(pid_t process);

}  // namespace runner
