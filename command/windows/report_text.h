// What `reheap doctor` found, for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace rh::command {

// The same object that --json prints.
std::string report_text(const nlohmann::ordered_json& findings);

}  // namespace rh::command
