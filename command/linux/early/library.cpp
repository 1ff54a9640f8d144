#include "library.h"

#include "kernel.h"
#include "python_package.h"

namespace rh::command {
namespace {

constexpr const char* plain_name = "libreheap.so";
constexpr const char* hardened_name = "libreheap-hardened.so";

// Beside the folder the command lies in. The first that fits a program's architecture is taken.
constexpr const char* places[] = {
    "/lib/",
    "/lib/x86_64-linux-gnu/",
    "/lib/aarch64-linux-gnu/",
    "/lib64/",
    // 32-bit, as distributions install it
    "/lib32/",
    "/lib/i386-linux-gnu/",
};
// 32-bit in a build tree: build/m32 beside build/release.
constexpr const char* neighbour = "/m32/lib/";

// LD_PRELOAD separates its entries by these and has no way to quote them.
Refusal check_spelling(Str path) {
  if (path.find_any(" :") == path.size) return {};
  return {exit_failed, join({"the library's path holds a space or a colon, which LD_PRELOAD cannot carry: ", path,
                             "; move it, or name a link to it with --library"})};
}

Refusal add_named(Str name, Str origin, Libraries& libraries) {
  // A link is kept as it was named: it may be the way around a path that cannot be preloaded.
  const Str path = name.front() == '/' ? name : join({kernel::working_directory(), "/", name});
  const ElfFile elf = read_elf(path);
  if (!elf.valid || !elf.shared_object || !elf.dynamic)
    return {exit_failed, join({origin, " names ", name, ", which is not there, or not a shared library"})};
  libraries.found[libraries.count++] = {path, elf.architecture};
  return check_spelling(path);
}

Refusal add_if_there(Str path, Libraries& libraries) {
  const ElfFile elf = read_elf(path);
  const bool wanted = elf.valid && elf.dynamic && !libraries.for_architecture(elf.architecture);
  if (!wanted || libraries.count == Libraries::most) return {};
  libraries.found[libraries.count++] = {path, elf.architecture};
  return check_spelling(path);
}

Refusal none_found(Str prefix, Str file_name) {
  return {exit_failed, join({"cannot find ", file_name, " (looked for ", prefix, places[0], file_name,
                             " and its like); build it with ./dev build, or name it with --library PATH or "
                             "REHEAP_LIBRARY=PATH"})};
}

}  // namespace

const Library* Libraries::for_architecture(const Architecture& architecture) const {
  for (std::size_t at = 0; at < count; ++at)
    if (found[at].architecture == architecture) return &found[at];
  return nullptr;
}

Refusal find_libraries(const Settings& settings, const char* variable, const Architecture* wanted,
                       Libraries& libraries) {
  const char* option = settings.library;
  const bool has_option = option && *option;
  if (has_option && settings.hardened)
    return {exit_failed, join({"--hardened and --library name two libraries; leave one of them out"})};
  libraries.named = true;
  if (has_option) return add_named(option, "--library", libraries);
  if (variable && *variable && !settings.hardened) return add_named(variable, "REHEAP_LIBRARY", libraries);
  libraries.named = false;
  const char* file_name = settings.hardened ? hardened_name : plain_name;
  const Str prefix = command_path().directory().directory();
  for (const char* place : places) {
    if (const Refusal refusal = add_if_there(join({prefix, place, file_name}), libraries)) return refusal;
    if (wanted && libraries.for_architecture(*wanted)) return {};
  }
  const Str beside = join({prefix.directory(), neighbour, file_name});
  if (const Refusal refusal = add_if_there(beside, libraries)) return refusal;
  if (libraries.count > 0) return {};
  if (const Str package = python_package(prefix); !package.empty())
    if (const Refusal refusal = add_if_there(join({package, "/lib/", file_name}), libraries)) return refusal;
  return libraries.count > 0 ? Refusal() : none_found(prefix, file_name);
}

Str command_path() { return kernel::read_link("/proc/self/exe"); }

}  // namespace rh::command
