// What is so because of Wine alone, as Wine 8 was seen to be.
#pragma once

#include <windows.h>

#include <cstdint>
#include <optional>

#include "windows/under_wine.h"

namespace runner {

// It counts neither time nor faults nor commit of processes and jobs, and answers all the same.
using lab::under_wine;

// Whether a module of a process is one of Wine's own; nothing when that could not be read this time: Wine stops a
// process to read in it, and cannot while somebody else has.
std::optional<bool> is_wines(HANDLE process, std::uintptr_t begin);

// How Wine's ntdll calls the system, where Windows' has the instruction syscall.
inline constexpr unsigned char kWinesCall[] = {0xFF, 0x14, 0x25, 0x00, 0x10, 0xFE, 0x7F};

}  // namespace runner
