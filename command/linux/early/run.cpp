#include "run.h"

#include "kernel.h"

#include <linux/errno.h>

namespace rh::command {
namespace {

void choose_library(const Libraries& libraries, Plan& plan) {
  Program& program = plan.program;
  const bool children = children_reachable(program);
  if (program.obstacle != Obstacle::none && !children) return;
  // What is no ELF file, and a static program's children, are most likely of the command's own kind.
  const Library* library = program.elf.valid ? libraries.for_architecture(program.elf.architecture) : nullptr;
  if (!library && (children || !program.elf.valid)) library = &libraries.found[0];
  if (library) {
    plan.library = library->path;
    return;
  }
  program.obstacle = Obstacle::other_architecture;
  program.reason = join({"it is for ", name_of(program.elf.architecture), ", and libreheap.so is there for ",
                         name_of(libraries.found[0].architecture), " only (", libraries.found[0].path, ")"});
}

}  // namespace

Refusal plan(const RunOptions& options, char* const* arguments, char* const* environment, Plan& plan) {
  Program& program = plan.program;
  if (const Refusal refusal = inspect(arguments[0], value_of(environment, "PATH"), program)) return refusal;
  Libraries libraries;
  const Architecture* wanted = program.elf.valid ? &program.elf.architecture : nullptr;
  const char* variable = value_of(environment, "REHEAP_LIBRARY");
  if (const Refusal refusal = find_libraries(options.settings, variable, wanted, libraries)) return refusal;
  choose_library(libraries, plan);
  return {};
}

long become(const Plan& plan, const RunOptions& options, char* const* arguments, char* const* environment) {
  const Program& program = plan.program;
  if (!plan.library.empty()) environment = with_library(environment, plan.library, options.settings);
  const long error = kernel::execute(program.path().data, arguments, environment);
  if (error != -ENOEXEC || !program.by_shell) return error;
  std::size_t count = 0;
  while (arguments[count]) ++count;
  auto** words = static_cast<char**>(keep((count + 2) * sizeof(char*)));
  if (!words) return -ENOMEM;
  words[0] = const_cast<char*>(program.image().data);
  words[1] = const_cast<char*>(program.path().data);
  for (std::size_t at = 1; at <= count; ++at) words[at + 1] = arguments[at];
  return kernel::execute(words[0], words, environment);
}

CommandLine split(int count, char* const* words) {
  for (int at = 1; at < count; ++at)
    if (Str(words[at]) == "--") return {at, words + at + 1};
  return {count, nullptr};
}

}  // namespace rh::command
