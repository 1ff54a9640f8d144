// The short way of `reheap run`.
//
// The command stands before every start of a program, so its plain form is recognised at the process's
// very first instruction, before the C library, the C++ library and the parser for command lines are set
// up: that would take 0.45 ms or more, as long again as all the rest (docs/command.md tells how it was measured).
// Whatever is not plain, be it help, a mistake, a program that cannot be reached or started, is left
// to the ordinary start and main, which look again and speak.

#include "run.h"

namespace rh::command {
namespace {

const LibraryOption* find_option(Str name) {
  for (const LibraryOption& option : library_options)
    if (option.name == name) return &option;
  return nullptr;
}

// One word before the --; false when it is not plain.
bool take(RunOptions& options, Str word) {
  const bool has_value = word.holds('=');
  const Str name = word.part(0, word.find('='));
  const Str value = word.part(name.size + 1);
  if (!has_value && name == require_flag) return options.require = true;
  if (!has_value && name == quiet_flag) return options.quiet = true;
  if (!has_value && name == hardened_flag) return options.settings.hardened = true;
  if (has_value && name == library_option) {
    options.settings.library = value.data;
    return true;
  }
  const LibraryOption* option = find_option(name);
  if (!option || option->value == (has_value ? Value::none : Value::required)) return false;
  if (has_value && (value.empty() || !well_formed(*option, value))) return false;
  return !set(options.settings, *option, value);
}

}  // namespace

// `stack` is as the kernel leaves it: the count, the words, nullptr, the environment, nullptr.
extern "C" [[gnu::used]] void reheap_early_start(char** stack) {
  const int count = static_cast<int>(reinterpret_cast<long>(stack[0]));
  char** words = stack + 1;
  char** environment = words + count + 1;
  if (count < 4 || !(Str(words[1]) == "run")) return;
  const CommandLine line = split(count, words);
  if (!line.program || !line.program[0]) return;
  RunOptions options;
  for (int at = 2; at < line.own; ++at)
    if (!take(options, words[at])) return;
  Plan plan;
  if (rh::command::plan(options, line.program, environment, plan)) return;
  if (plan.program.obstacle == Obstacle::none) become(plan, options, line.program, environment);
}

}  // namespace rh::command

#if defined(__x86_64__)
// The process's entry (-e reheap_entry). %rdx belongs to the ordinary start; the stack stays as it was.
__asm__(R"(
  .text
  .globl reheap_entry
  .type reheap_entry, @function
reheap_entry:
  xorl %ebp, %ebp
  movq %rsp, %rdi
  pushq %rdx
  subq $8, %rsp
  call reheap_early_start
  addq $8, %rsp
  popq %rdx
  jmp _start
  .size reheap_entry, . - reheap_entry
)");
#endif
