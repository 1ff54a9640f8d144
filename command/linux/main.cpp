// The `reheap` command line.

#include "common/frame.h"
#include "common/message.h"
#include "completion.h"
#include "doctor.h"
#include "early/run.h"
#include "lab.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace rh::command {
namespace {

struct Command {
  CLI::App app{"reheap puts its memory allocator under programs as they are.", "reheap"};
  RunOptions run;
  DoctorOptions doctor;
  std::string shell;

  Command() {
    set_up(app, "CMD", "docs/command.md");
    app.footer(app.get_footer() + "\nreheap compare, record, replay, trace: the lab's, docs/lab.md");
    add_run();
    add_doctor();
    auto* completion = app.add_subcommand("completion", "Print a completion script for a shell");
    completion->add_option("shell", shell, "bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}))
        ->type_name("SHELL");
  }

 private:
  // Which options there are, and what they mean, settings.h knows.
  static void add_settings(CLI::App& sub, Settings& settings) {
    auto keep_name = [&settings](const std::string& name) { settings.library = join({name.c_str()}).data; };
    sub.add_option_function<std::string>(library_option, keep_name, "The libreheap.so to use (or REHEAP_LIBRARY=PATH)")
        ->type_name("PATH");
    sub.add_flag(hardened_flag, settings.hardened, "The build that looks for misuse of memory (docs/hardened.md)");
    for (const LibraryOption& option : library_options)
      add_library_option(
          sub, option, [&settings, &option](const std::string& value) { check(set(settings, option, value.c_str())); });
  }

  void add_run() {
    CLI::App& sub = command::add_run(app, run.require, run.quiet);
    add_settings(sub, run.settings);
    sub.footer("The exit status is the program's; 125 when reheap itself fails, 126 when CMD cannot be\n"
               "executed, 127 when it is not found.");
  }

  void add_doctor() {
    CLI::App& sub = command::add_doctor(app, "Prove which library serves malloc", doctor.json);
    add_settings(sub, doctor.settings);
    sub.footer("Without CMD the installation is examined. CMD's own code is not run.\n"
               "The exit status is 0 when reheap serves malloc there, 1 when it does not.");
  }
};

void tell_obstacle(const RunOptions& options, const Program& program) {
  const std::string unreached = to_string(program.image()) + " cannot be reached: " + to_string(program.reason);
  if (options.require) throw Failure(exit_failed, unreached + "; not started, because of --require");
  if (options.quiet) return;
  say(unreached + (children_reachable(program) ? "; it runs on its own malloc, programs it starts on reheap"
                                               : "; it runs unchanged"));
}

[[noreturn]] void run(const RunOptions& options, char* const* arguments) {
  Plan plan;
  check(rh::command::plan(options, arguments, environ, plan));
  const Program& program = plan.program;
  if (program.obstacle != Obstacle::none) tell_obstacle(options, program);
  const long error = -become(plan, options, arguments, environ);
  const int status = error == ENOENT ? exit_not_found : exit_not_executable;
  const std::string path = to_string(program.path());
  if (error == ENOENT && !program.elf.loader.empty())
    throw Failure(status, path + ": its loader " + to_string(program.elf.loader) + " is missing");
  throw Failure(status, path + ": " + std::strerror(static_cast<int>(error)));
}

int act(Command& command, const CommandLine& line) {
  const std::string name = chosen(command.app, "CMD");
  const bool named = line.program && line.program[0];
  if (name == "run") {
    if (!named) throw Failure(exit_failed, "say what to run: reheap run -- CMD [ARGS...]");
    run(command.run, line.program);
  }
  if (name == "doctor") {
    if (line.program && !named) throw Failure(exit_usage, "say what to examine: reheap doctor -- CMD [ARGS...]");
    return doctor(command.doctor, line.program);
  }
  const std::string script = completion_script(command.app, command.shell);
  fwrite(script.data(), 1, script.size(), stdout);
  return exit_reached;
}

int command_main(int count, char** words) {
  return ended([&] {
    if (count > 1 && is_lab_command(words[1])) become_lab(words);
    const CommandLine line = split(count, words);
    const bool runs = count > 1 && std::strcmp(words[1], "run") == 0;
    Command command;
    const bool more = parse(command.app, {words + 1, words + line.own}, runs ? int{exit_failed} : int{exit_usage});
    return more ? act(command, line) : int{exit_reached};
  });
}

}  // namespace
}  // namespace rh::command

int main(int count, char** words) { return rh::command::command_main(count, words); }
