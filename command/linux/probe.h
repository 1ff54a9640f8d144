// Starting a program under the library only so far that the library can tell what it finds there.
#pragma once

#include "common/settings.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace rh::command {

struct ProbeResult {
  std::optional<nlohmann::ordered_json> report;  // what rh_report_json says in that process
  std::string failure;                           // why there is none
};

// The program's own code does not run: its loader first only lists what it would load (as ldd has
// it), and unless the library is on that list, nothing is started. Then the library, told by
// REHEAP_DOCTOR, writes its report and ends the process before main.
// `loader`: the one the program asks for. `arguments`: argv, its first word the path to start.
ProbeResult probe(const std::string& path, Str loader, char* const* arguments, Str library, const Settings& settings);

}  // namespace rh::command
