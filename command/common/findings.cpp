#include "findings.h"

#include "frame.h"
#include "refusal.h"

#include <algorithm>
#include <cstdio>

namespace rh::command {
namespace {

std::string text_of(const Findings::Json& findings) {
  const auto string = [](const Findings::Json& value) { return value.get<std::string>(); };
  std::string text =
      report_line("reheap", string(findings["command"]["version"]) + ", " + string(findings["command"]["path"]));
  for (const auto& library : findings["libraries"])
    text += report_line("found", string(library["path"]) + " (" + string(library["architecture"]) + ")");
  text += report_details(findings);
  const bool reached = findings["reached"].get<bool>();
  return text + report_line("reached", reached ? "yes" : "no: " + string(findings["reason"]));
}

// Names come from files and paths, which may hold any bytes: what is not UTF-8 in them is marked.
std::string json_text(const Findings::Json& findings) {
  return findings.dump(2, ' ', false, Findings::Json::error_handler_t::replace) + "\n";
}

}  // namespace

Findings::Findings(const std::string& path) {
  json_["command"] = {{"path", path}, {"version", command_version}};
  json_["libraries"] = Json::array();
}

void Findings::add_library(const std::string& path, const std::string& architecture) {
  json_["libraries"].push_back({{"path", path}, {"architecture", architecture}});
}

bool Findings::take_report(const Json& report) {
  json_["report"] = report;
  const std::string version = report.value("version", std::string("unknown"));
  if (version == command_version) return true;
  set_unreached("the library is version " + version + " and this command " + command_version +
                ": install both from one build");
  return false;
}

void Findings::set_unreached(const std::string& reason) {
  json_["reached"] = false;
  json_["reason"] = reason;
}

int Findings::print(bool as_json) const {
  const std::string text = as_json ? json_text(json_) : text_of(json_);
  fwrite(text.data(), 1, text.size(), stdout);
  return json_["reached"].get<bool>() ? exit_reached : exit_not_reached;
}

std::string report_line(std::string name, const std::string& rest) {
  constexpr std::size_t column = 14;
  name.resize(std::max(column, name.size() + 2), ' ');
  return name + rest + "\n";
}

}  // namespace rh::command
