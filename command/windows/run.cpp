#include "run.h"

#include "arrival.h"
#include "common/message.h"
#include "start.h"
#include "text.h"

#include <memory>
#include <set>

namespace rh::command {
namespace {

// The console sends its signals to the program too: what they do is the program's business, and the launcher ends when
// the program does. A handler, for the mere request to ignore Ctrl-C would be inherited.
BOOL WINAPI leave_to_program(DWORD signal) {
  // Returning from these would end the launcher at once.
  if (signal == CTRL_CLOSE_EVENT || signal == CTRL_LOGOFF_EVENT || signal == CTRL_SHUTDOWN_EVENT) Sleep(INFINITE);
  return TRUE;
}

std::set<HANDLE> take_standard_streams() {
  std::set<HANDLE> streams;
  for (const DWORD name : {STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE}) {
    const HANDLE stream = GetStdHandle(name);
    if (stream != nullptr && stream != INVALID_HANDLE_VALUE) streams.insert(stream);
    SetStdHandle(name, nullptr);
  }
  return streams;
}

// Not what only has the number of a handle that was never handed on: by that the launcher may know something else.
bool is_inherited(HANDLE handle) {
  DWORD flags = 0;
  return GetHandleInformation(handle, &flags) && (flags & HANDLE_FLAG_INHERIT) != 0;
}

// Who reads from the program's output must see its end when the program closes it, who writes to its input likewise.
void let_go_of_streams() {
  std::set<HANDLE> streams = take_standard_streams();
  for (const HANDLE descriptor : descriptors_given())
    if (is_inherited(descriptor)) streams.insert(descriptor);
  for (const HANDLE stream : streams) CloseHandle(stream);
}

void tell(const RunOptions& options, const CommandLine& line, const inject::Outcome& outcome) {
  const std::string program = narrow(line.program);
  if (!outcome.entered() && options.require)
    throw Failure(exit_failed,
                  program + " cannot be reached: " + reason_of(outcome) + "; not started, because of --require");
  if (options.quiet || outcome.entry == inject::Entry::first_import) return;
  if (outcome.entered())
    say(program + " is reached late, with its first blocks left to its own heap: " + reason_of(outcome) +
        (options.children ? "; programs it starts are not reached" : ""));
  else
    say(program + " cannot be reached: " + reason_of(outcome) + "; it runs unchanged");
}

static_assert(inject::kRefused == exit_failed, "the library ends for the launcher");

inject::Settings settings(const RunOptions& options) {
  inject::Settings settings;
  settings.follow_children = options.children ? 1 : 0;
  if (options.require)
    settings.when_left = inject::WhenLeft::refuse;
  else if (!options.quiet)
    settings.when_left = inject::WhenLeft::tell;
  settings.error_mode = GetErrorMode();
  return settings;
}

// Gives the program, running or about to.
std::unique_ptr<StartedProgram> start(const RunOptions& options, const CommandLine& line) {
  const std::wstring library = library_to_use(options.library, options.hardened);
  const Arrival arrival;
  auto program = std::make_unique<StartedProgram>(create_suspended(line));
  inject::Outcome outcome =
      inject::enter(program->handles(), {library.c_str(), start_helper, arrival.section()}, settings(options));
  if (outcome.entered()) outcome = arrival.await(*program, outcome, library, INFINITE);
  tell(options, line, outcome);
  // Without the library, once more from the beginning.
  if (!outcome.entered() && program->wait(0)) program = std::make_unique<StartedProgram>(create_suspended(line));
  return program;
}

}  // namespace

void run(const RunOptions& options, const CommandLine& line) {
  SetConsoleCtrlHandler(leave_to_program, TRUE);
  const std::unique_ptr<StartedProgram> program = start(options, line);
  program->let_go();
  let_go_of_streams();
  const auto code = program->wait(INFINITE);
  // The launcher's own end has nothing left to do.
  ExitProcess(code ? *code : DWORD{exit_failed});
}

}  // namespace rh::command
