#include "common/findings.h"

#include "common/joined.h"

#include <cstdint>
#include <cstdio>

namespace rh::command {
namespace {

using Json = Findings::Json;

std::string plain(const Json& value) {
  if (!value.is_string()) return value.dump();
  return value == "" ? "none" : value.get<std::string>();
}

std::string human_size(const Json& bytes) {
  if (!bytes.is_number()) return plain(bytes);
  constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double size = bytes.get<double>();
  int unit = 0;
  for (; size >= 1024 && unit < 4; ++unit) size /= 1024;
  char text[32];
  snprintf(text, sizeof text, "%.4g %s", size, units[unit]);
  return text;
}

std::string options_text(const Json& options) {
  return joined(options.items(), ", ", [](const auto& option) { return option.key() + " " + plain(option.value()); });
}

// Empty when there is none.
std::string limit_text(const Json& limit) {
  std::string text;
  for (const char* kind : {"soft", "hard"}) {
    const Json bytes = limit.value(kind, Json(0));
    if (bytes != 0) text += (text.empty() ? "" : ", ") + std::string(kind) + ' ' + human_size(bytes);
  }
  return text;
}

std::string realm_text(const Json& realm) {
  if (realm.value("reserved", Json(0)) == 0) return "not reserved: nothing was allocated yet";
  return joined(realm.items(), ", ", [](const auto& fact) { return fact.key() + " " + human_size(fact.value()); });
}

std::string program_text(const Json& program) {
  std::string text = report_line("program", joined(program["chain"], " -> ", plain));
  if (!program["architecture"].is_null()) text += report_line("architecture", plain(program["architecture"]));
  const std::string loader = program["loader"].is_null() ? "" : ", loader " + plain(program["loader"]);
  text += report_line("linkage", plain(program["linkage"]) + loader);
  text += report_line("LD_PRELOAD", program["ld_preload_honoured"].get<bool>() ? "honoured" : "ignored");
  if (!program["carries"].empty()) text += report_line("carries", joined(program["carries"], ", ", plain));
  return text;
}

std::string process_text(const Json& report) {
  std::string text = report_line("malloc", "served by " + plain(report.value("malloc_served_by", Json("unknown"))));
  text += report_line("library", plain(report.value("library", Json("unknown"))) + ", version " +
                                     plain(report.value("version", Json("unknown"))) + ", " +
                                     plain(report.value("build", Json("build unknown"))));
  text += report_line("options", options_text(report.value("options", Json::object())));
  const std::string limits = limit_text(report.value("limit", Json::object()));
  if (!limits.empty()) text += report_line("limit", limits);
  text += report_line("realm", realm_text(report.value("realm", Json::object())));
  return text;
}

}  // namespace

std::string report_details(const Json& findings) {
  std::string text;
  if (findings.contains("program")) text += program_text(findings["program"]);
  if (findings.contains("report")) text += process_text(findings["report"]);
  return text;
}

}  // namespace rh::command
