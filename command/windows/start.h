// Starting the program, so that it cannot tell the launcher from whoever started that.
#pragma once

#include "command_line.h"
#include "redirect/process/inject.h"

#include <optional>
#include <vector>

namespace rh::command {

// A process that has not run yet. Ends with this object unless it was let go.
class StartedProgram {
 public:
  explicit StartedProgram(const PROCESS_INFORMATION& made) : made_(made) {}
  StartedProgram(const StartedProgram&) = delete;
  StartedProgram& operator=(const StartedProgram&) = delete;
  ~StartedProgram();

  const PROCESS_INFORMATION& handles() const { return made_; }
  HANDLE process() const { return made_.hProcess; }
  // Lets it run.
  void resume();
  // Says that it has suspended itself.
  void note_suspended() { runs_ = false; }
  // Lets it run, if it does not, and live on.
  void let_go();
  // Its exit code, or nothing when it did not end in time.
  std::optional<DWORD> wait(DWORD milliseconds) const;

 private:
  PROCESS_INFORMATION made_;
  bool runs_ = false;
  bool let_go_ = false;
};

// The program with the launcher's standard streams; or with `only_errors`, a file, to write to and nothing else.
// Throws Failure when it cannot be started.
PROCESS_INFORMATION create_suspended(const CommandLine& line, const wchar_t* only_errors = nullptr);

// The handles behind the descriptors that C runtimes hand to each other, as the launcher was given them.
std::vector<HANDLE> descriptors_given();

// For inject::Means.
bool start_helper(const wchar_t* program, wchar_t* command_line, PROCESS_INFORMATION* made);

// The reheap.dll to use: --dll, or the one beside the launcher, of the hardened build or not. Throws when --dll names
// no library, or both are given, or there is no hardened one; where there is no other, that is found out later.
std::wstring library_to_use(const std::string& given, bool hardened = false);

// Whether a library is reheap's: by the function that answers REHEAP_DOCTOR. Read as data: it may be of another
// architecture.
bool is_reheap(const wchar_t* library);

}  // namespace rh::command
