#include "settings.h"

#include "common/frame.h"
#include "text.h"

namespace rh::command {
namespace {

// The program may change its folder before it ends.
std::string full_path_of(const std::string& file) {
  const std::wstring path = full_path(wide(file));
  return path.empty() ? file : narrow(path);
}

void set(const LibraryOption& option, const std::string& value) {
  std::string given = names_file(option) && !value.empty() && !is_switch(value.c_str()) ? full_path_of(value) : value;
  if (option.value == Value::optional && value.empty()) given = "1";
  if (option.value == Value::none) given = "1";
  SetEnvironmentVariableW(wide(option.variable).c_str(), wide(given).c_str());
}

// Of this system alone.
constexpr LibraryOption kLayers = {"--layers", "REHEAP_LAYERS", Value::required, "both|crt|heap|none",
                                   "What is replaced: the C runtimes, the OS's heap, or both"};

void add(CLI::App& command, const LibraryOption& option) {
  add_library_option(command, option, [&option](const std::string& value) { set(option, value); });
}

}  // namespace

void add_settings(CLI::App& command) {
  for (const LibraryOption& option : library_options) add(command, option);
  add(command, kLayers);
}

}  // namespace rh::command
