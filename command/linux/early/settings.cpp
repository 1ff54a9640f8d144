#include "common/settings.h"

#include "elf_file.h"
#include "kernel.h"

namespace rh::command {
namespace {

// The program may change its directory before it ends.
// Empty where a relative one leads nowhere.
Str full_path(Str file) {
  if (file.front() == '/') return file;
  const Str folder = kernel::working_directory();
  return !folder.empty() && folder.front() == '/' ? join({folder, "/", file}) : Str();
}

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

// libreheap.so, libreheap-hardened.so.0: what the library is called, in any build and version.
bool is_name_of_ours(Str path) {
  Str name = path.base_name();
  for (const Str part : {Str("libreheap-hardened.so"), Str("libreheap.so")}) {
    const Str behind = name.part(part.size);
    if (name.starts_with(part) && (behind.empty() || behind.front() == '.')) return true;
  }
  return false;
}

// The file's own name, whatever links lead to it; empty when it cannot be opened.
Str real_name(Str path, Architecture& architecture) {
  const long file = path.holds('/') ? kernel::open(join({path}).data) : -1;
  if (file < 0) return {};
  architecture = read_elf(file).architecture;
  const Str name = kernel::read_link(join({"/proc/self/fd/", decimal(static_cast<unsigned long>(file))}).data);
  kernel::close(file);
  return name;
}

// Whether a program that gets `library` would get two of ours with that entry. Another architecture's stays: that is
// for programs which cannot load this one.
bool is_second(Str entry, Str library) {
  Architecture own, architecture;
  const Str name = real_name(entry, architecture);
  const Str own_name = real_name(library, own);
  if (name.empty()) return is_name_of_ours(entry);
  if (!(architecture == own)) return false;
  return name == own_name || is_name_of_ours(entry) || is_name_of_ours(name);
}

// The library first, and behind it what was there, but for others of ours.
Str preload(const char* before, Str library) {
  constexpr const char* separators = " :";
  Str text = join({"LD_PRELOAD=", library});
  for (Str rest(before ? before : ""); !rest.empty();) {
    const std::size_t begin = Str(separators).holds(rest.front()) ? 1 : 0;
    const Str entry = rest.part(begin, rest.part(begin).find_any(separators));
    const Str separator = begin != 0 ? rest.part(0, 1) : Str(":");
    if (!entry.empty() && !is_second(entry, library)) text = join({text, separator, entry});
    rest = rest.part(begin + entry.size);
  }
  return text;
}

}  // namespace

Refusal set(Settings& settings, const LibraryOption& option, Str value) {
  Str text = join({value});
  if (names_file(option) && !value.empty() && !is_switch(value)) text = full_path(value);
  if (text.empty() && !value.empty())
    return {exit_failed,
            join({option.name, "=", value, ": the working directory is gone; name the file by a full path"})};
  if (option.value == Value::optional && value.empty()) text = "1";
  if (option.value == Value::none) text = "1";
  settings.variables[&option - library_options] = join({option.variable, "=", text});
  return {};
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
