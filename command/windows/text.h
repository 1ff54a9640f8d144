// Text between the two forms: UTF-8 in here, UTF-16 at the OS.
#pragma once

#include "redirect/process/outcome.h"
#include "redirect/process/places.h"

#include <string>
#include <string_view>
#include <windows.h>

namespace rh::command {

std::string narrow(std::wstring_view text);
std::wstring wide(std::string_view text);

// The full path of what a name stands for; empty when it is longer than that.
std::wstring full_path(const std::wstring& name, DWORD longest = inject::kLongestPath);

// What the OS says about an error, on one line.
std::string error_text(DWORD error);

// Why a program was not entered, or not as it should be.
std::string reason_of(const inject::Outcome& outcome);

// The whole of a file; empty when it cannot be read.
std::string read_file(const wchar_t* path);

}  // namespace rh::command
