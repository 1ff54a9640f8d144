// (MinGW's std::filesystem does not link with the UCRT.)
#pragma once

#include <string>

namespace trace {

// Whether both paths lead to one file, by whatever name. A file that is not there is no other one.
bool is_same_file(const std::string& one, const std::string& other);

}  // namespace trace
