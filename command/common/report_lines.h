// What `reheap doctor` prints, as far as it is the same on every system.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

namespace rh::command {

// What a line is called, in one column, and the rest.
inline std::string report_line(std::string name, const std::string& rest) {
  constexpr std::size_t column = 14;
  name.resize(std::max(column, name.size() + 2), ' ');
  return name + rest + "\n";
}

// For programs. Names come from files and paths, which may hold any bytes: what is no UTF-8 in them is marked.
inline std::string report_json(const nlohmann::ordered_json& findings) {
  constexpr auto mark = nlohmann::ordered_json::error_handler_t::replace;
  return findings.dump(2, ' ', false, mark) + "\n";
}

// Which command this is, and the libraries it found.
inline std::string report_head(const nlohmann::ordered_json& findings) {
  const auto text = [](const nlohmann::ordered_json& value) { return value.get<std::string>(); };
  std::string head = report_line("reheap", text(findings["command"]["version"]) + ", " +
                                               text(findings["command"]["path"]));
  for (const auto& library : findings["libraries"])
    head +=
        report_line("found", text(library["path"]) + " (" + text(library["architecture"]) + ")");
  return head;
}

inline std::string report_end(const nlohmann::ordered_json& findings) {
  const bool reached = findings["reached"].get<bool>();
  return report_line("reached", reached ? "yes" : "no: " + findings["reason"].get<std::string>());
}

}  // namespace rh::command
