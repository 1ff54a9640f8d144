// reheap.exe: the command line.

#include "command_line.h"
#include "common/frame.h"
#include "common/message.h"
#include "doctor.h"
#include "patch_files.h"
#include "profile.h"
#include "run.h"
#include "settings.h"
#include "start.h"
#include "text.h"

#include <cmath>
#include <cstdlib>

namespace rh::command {
namespace {

// What a script gives whose variable has no value: by an empty name the program's own file would be replaced.
const CLI::Validator not_empty([](std::string& name) { return std::string(name.empty() ? "an empty name" : ""); }, "");

// Others would be taken modulo 2 to the 64th, or for the largest number there is.
const CLI::Validator is_plain_size(
    [](std::string& size) {
      const size_t digits = size.find_first_not_of("0123456789");
      const bool possible = digits != 0 && !size.empty() && (digits < 20 || size.size() < 20);
      return std::string(possible ? "" : "not a size: " + size);
    },
    "");

// A range keeps everything out but this.
const CLI::Validator no_nan(
    [](std::string& text) {
      return std::string(std::isnan(std::strtod(text.c_str(), nullptr)) ? "not a time: " + text : "");
    },
    "");

struct Command {
  CLI::App app{"reheap puts its memory allocator under programs as they are.", "reheap"};
  RunOptions run;
  DoctorOptions doctor;
  PatchOptions patch, unpatch;
  ProfileOptions profile;

  Command() {
    set_up(app, "PROGRAM", "docs/injection.md");
    add_run();
    add_doctor();
    add_patch();
    add_unpatch();
    add_profile();
  }

 private:
  void add_run() {
    CLI::App& sub = command::add_run(app, run.require, run.quiet);
    sub.add_flag("--children,!--no-children", run.children, "Reach the programs it starts too (the default), or not");
    add_library(sub, run.library, run.hardened);
    add_settings(sub);
    sub.footer("The exit code is the program's; 2 for a mistake in the options, 125 when reheap itself\n"
               "fails, 126 when PROGRAM cannot be executed, 127 when it is not found.");
  }

  void add_doctor() {
    CLI::App& sub = command::add_doctor(app, "Tell what serves memory in a program", doctor.json);
    add_library(sub, doctor.library, doctor.hardened);
    add_settings(sub);
    sub.footer("Without PROGRAM the installation is examined. PROGRAM's own code is not run.\n"
               "The exit code is 0 when reheap serves memory there, 1 when it does not.");
  }

  void add_patch() {
    auto* sub = app.add_subcommand("patch", "Make a program's file import reheap.dll for good");
    add_files(*sub, patch);
    sub->add_option("--dll", patch.request.library, "The name it is imported by (reheap.dll)")->type_name("NAME");
    sub->add_flag("--copy-dll", patch.copy_library, "Put the reheap.dll for it beside the program");
    sub->add_flag("--allow-unsigned", patch.request.allow_unsigned, "Patch a signed file: its signature is taken off");
    sub->add_flag("--allow-dll", patch.request.allow_library, "Patch a DLL");
    sub->footer("The exit code is 0, or 2 for a mistake in the options, 125 when it cannot be done,\n"
                "126 when FILE is no program, 127 when it is not found. FILE is then as it was.");
  }

  void add_unpatch() {
    auto* sub = app.add_subcommand("unpatch", "Make a patched file what it was before");
    add_files(*sub, unpatch);
    sub->footer("The exit codes are those of patch.");
  }

  void add_profile() {
    auto* sub =
        app.add_subcommand("profile", "Make a heap profile of a process that runs on reheap (docs/profiles.md)");
    sub->add_option("--pid", profile.process, "The process's id")
        ->required()
        ->check(CLI::Range(1U, 0xFFFF'FFFFU))
        ->type_name("PID");
    sub->add_option("--seconds", profile.seconds, "For how long (30)")
        ->check(CLI::Range(0.0, 86400.0))
        ->check(no_nan)
        ->type_name("S");
    sub->add_option("--rate", profile.rate, "One byte in SIZE is sampled; else as the process was told")
        ->transform(CLI::AsSizeValue(false))
        ->transform(is_plain_size)  // of these the last one given sees the word first
        ->type_name("SIZE");
    sub->add_option("-o,--output", profile.file, "The file, as pprof reads it (profile.PID.pb.gz)")
        ->check(not_empty)
        ->type_name("FILE");
    sub->footer("The exit code is 0, or 2 for a mistake in the options, 125 when it cannot be done.");
  }

  static void add_files(CLI::App& sub, PatchOptions& options) {
    sub.add_option("FILE", options.file, "The program's file")->required()->check(not_empty)->type_name("");
    sub.add_option("-o,--output", options.output, "Where the result goes; else in FILE's place")
        ->check(not_empty)
        ->type_name("OUT");
  }

  static void add_library(CLI::App& sub, std::string& library, bool& hardened) {
    sub.add_option("--dll", library, "The reheap.dll to use")->check(not_empty)->type_name("PATH");
    sub.add_flag(hardened_flag, hardened, "The build that looks for misuse of memory (docs/hardened.md)");
  }
};

// What the library is put under is named behind --.
void need_program(const CommandLine& line, const std::string& what, bool needed) {
  if (line.program.empty() && needed) throw Failure(exit_usage, "say what to " + what);
}

int act(const Command& command, const CommandLine& line) {
  const std::string name = chosen(command.app, "PROGRAM");
  if (name == "run") {
    need_program(line, "run: reheap run -- PROGRAM [ARGS...]", true);
    run(command.run, line);
  }
  if (name == "doctor") {
    need_program(line, "examine: reheap doctor -- PROGRAM [ARGS...]", line.has_program);
    return doctor(command.doctor, line);
  }
  if (name == "profile") {
    if (line.has_program) throw Failure(exit_usage, "start it by reheap run --profile=FILE -- PROGRAM [ARGS...]");
    return profile(command.profile);
  }
  if (line.has_program) throw Failure(exit_usage, "the file stands before any --: reheap " + name + " FILE");
  return name == "patch" ? patch(command.patch) : unpatch(command.unpatch);
}

// `reheap enter PROCESS THREAD CHILDREN WHENLEFT REHEARSES ERRORMODE ASKER SECTION HARDENED`: what the library of
// another architecture, or its launcher, cannot do itself. Not for people: they could not have a process that waits.
bool is_request(const CommandLine& line) { return line.words.size() == 10 && line.words[0] == L"enter"; }

// The section that the asker knows by a handle of its own.
HANDLE section_of(DWORD asker, DWORD handle) {
  const HANDLE process = OpenProcess(PROCESS_DUP_HANDLE, FALSE, asker);
  HANDLE section = nullptr;
  DuplicateHandle(process, ULongToHandle(handle), GetCurrentProcess(), &section, 0, FALSE, DUPLICATE_SAME_ACCESS);
  return section;
}

int answer(const CommandLine& line) {
  const auto number = [&line](std::size_t at) {
    return static_cast<DWORD>(wcstoul(line.words[at].c_str(), nullptr, 10));
  };
  const PROCESS_INFORMATION suspended = {OpenProcess(PROCESS_ALL_ACCESS, FALSE, number(1)),
                                         OpenThread(THREAD_ALL_ACCESS, FALSE, number(2)), number(1), number(2)};
  const std::wstring library = library_to_use("", number(9) != 0);
  const inject::Settings settings = {.follow_children = number(3),
                                     .when_left = static_cast<inject::WhenLeft>(number(4)),
                                     .rehearses = number(5),
                                     .error_mode = number(6)};
  const HANDLE section = section_of(number(7), number(8));
  if (number(8) != 0 && section == nullptr)
    return static_cast<int>(inject::pack({.obstacle = inject::Obstacle::helper_failed}));
  return static_cast<int>(inject::pack(inject::enter(suspended, {library.c_str(), start_helper, section}, settings)));
}

std::vector<std::string> own_words(const CommandLine& line) {
  std::vector<std::string> words;
  for (const std::wstring& word : line.words) words.push_back(narrow(word));
  return words;
}

int launcher_main() {
  return ended([] {
    const CommandLine line = split(GetCommandLineW());
    if (is_request(line)) return answer(line);
    Command command;
    const bool more = parse(command.app, own_words(line), exit_usage);
    return more ? act(command, line) : int{exit_reached};
  });
}

}  // namespace
}  // namespace rh::command

int main() { return rh::command::launcher_main(); }
