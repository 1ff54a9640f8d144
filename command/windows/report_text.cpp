#include "common/findings.h"

#include "common/joined.h"

namespace rh::command {
namespace {

using Json = Findings::Json;

std::string plain(const Json& value);

std::string listed(const Json& values) {
  if (values.empty()) return "none";
  return joined(values.items(), ", ", [&values](const auto& item) {
    return (values.is_array() ? "" : item.key() + " ") + plain(item.value());
  });
}

std::string plain(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return value.is_structured() ? listed(value) : value.dump();
}

std::string program_text(const Json& program) {
  std::string text = report_line("program", plain(program["path"]));
  text += report_line("architecture", plain(program["architecture"]));
  text += report_line("kind", plain(program["kind"]));
  text += report_line("C runtime", plain(program["runtime"]));
  for (const auto& [library, functions] : program["allocation"].items())
    text += report_line("imports", library + ": " + plain(functions));
  if (const std::string heap = plain(program["heap_type"]); !heap.empty())
    text += report_line("heap type", heap + ", as its manifest asks");
  text += report_line("flow guard", plain(program["control_flow_guard"]));
  if (program["patched"].get<bool>()) text += report_line("patched", "yes: reheap unpatch takes it back");
  return text + report_line("ASLR", plain(program["aslr"]));
}

// Everything the library says of itself, by its own names: an object or list of objects on lines of their own. What was
// replaced stands above, as it was told.
std::string process_text(const Json& report) {
  std::string text;
  for (const auto& [name, value] : report.items()) {
    if (name == "replaced") continue;
    const bool rows = value.is_array() && !value.empty() && value.front().is_object();
    if (!rows) text += report_line(name, plain(value));
    if (rows)
      for (const Json& row : value) text += report_line(name, plain(row));
  }
  return text;
}

}  // namespace

std::string report_details(const Json& findings) {
  std::string text;
  if (findings.contains("program")) text += program_text(findings["program"]);
  if (findings.contains("way")) text += report_line("entered", plain(findings["way"]));
  if (findings.contains("found"))
    for (const Json& message : findings["found"]) text += report_line("inside", plain(message));
  if (findings.contains("report")) text += process_text(findings["report"]);
  return text;
}

}  // namespace rh::command
