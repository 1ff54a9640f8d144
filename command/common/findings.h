// What `reheap doctor` finds out: one JSON object, and the same for people.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace rh::command {

class Findings {
 public:
  using Json = nlohmann::ordered_json;

  // `path`: the command's own file.
  explicit Findings(const std::string& path);

  Json& operator[](const char* name) { return json_[name]; }
  void add_library(const std::string& path, const std::string& architecture);

  // What the library told from within the process. False when it is not of the command's version.
  bool take_report(const Json& report);

  void set_reached() { json_["reached"] = true; }
  void set_unreached(const std::string& reason);

  // Prints them, as JSON or as text, and gives the exit status.
  int print(bool as_json) const;

 private:
  Json json_;
};

// What a line of the text is called, in one column, and the rest.
std::string report_line(std::string name, const std::string& rest);

// The lines between the libraries found and the verdict; each system's doctor has its own.
std::string report_details(const Findings::Json& findings);

}  // namespace rh::command
