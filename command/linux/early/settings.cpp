#include "common/settings.h"

#include "kernel.h"

namespace rh::command {
namespace {

// The program may change its directory before it ends, and a file may be called "1".
Str full_path(Str file) { return file.front() == '/' ? file : join({kernel::working_directory(), "/", file}); }

bool names(const char* entry, Str name) {
  const Str text(entry);
  return text.starts_with(name) && text.data[name.size] == '=';
}

// In place of the entry of the same name, or as one more; `count` counts them.
void put(char** entries, std::size_t& count, Str entry) {
  const Str name = entry.part(0, entry.find('='));
  std::size_t at = 0;
  while (at < count && !names(entries[at], name)) ++at;
  entries[at] = const_cast<char*>(entry.data);
  if (at == count) ++count;
}

Str preload(const char* before, Str library) {
  if (!before || !*before) return join({"LD_PRELOAD=", library});
  const Str value(before);
  const Str behind = value.part(library.size, 1);
  const bool first_already = value.starts_with(library) && (behind.empty() || Str(" :").holds(behind.front()));
  return first_already ? join({"LD_PRELOAD=", value}) : join({"LD_PRELOAD=", library, ":", value});
}

}  // namespace

void set(Settings& settings, const LibraryOption& option, Str value) {
  Str text = join({value});
  if (names_file(option) && !value.empty()) text = full_path(value);
  if (option.value == Value::optional && value.empty()) text = "1";
  if (option.value == Value::none) text = "1";
  settings.variables[&option - library_options] = join({option.variable, "=", text});
}

const char* value_of(char* const* environment, Str name) {
  for (; *environment; ++environment)
    if (names(*environment, name)) return *environment + name.size + 1;
  return nullptr;
}

char* const* with_library(char* const* environment, Str library, const Settings& settings) {
  std::size_t count = 0;
  while (environment[count]) ++count;
  auto** entries = static_cast<char**>(keep((count + library_option_count + 2) * sizeof(char*)));
  if (!entries) kernel::end(125);
  for (std::size_t at = 0; at < count; ++at) entries[at] = environment[at];
  put(entries, count, preload(value_of(environment, "LD_PRELOAD"), library));
  for (const Str& variable : settings.variables)
    if (!variable.empty()) put(entries, count, variable);
  entries[count] = nullptr;
  return entries;
}

}  // namespace rh::command
