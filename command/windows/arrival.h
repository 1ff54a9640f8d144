// Whether the library came into the program, which the program's loader decides.
#pragma once

#include "redirect/process/inject.h"
#include "start.h"

namespace rh::command {

class Arrival {
 public:
  // Throws Failure when there is no memory for it.
  Arrival();
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;
  ~Arrival();

  // For inject::Means.
  HANDLE section() const { return section_; }

  // Lets a program go that was entered so, and gives what became of that, once it is known: the outcome, or Entry::none
  // when its loader did not take the library. Of the program's own code nothing has run then: either it has ended, or
  // it is still to be let go.
  inject::Outcome await(StartedProgram& program, const inject::Outcome& entered, const std::wstring& library,
                        DWORD patience) const;

 private:
  inject::Outcome await_import(StartedProgram& program, const inject::Outcome& entered, DWORD patience) const;

  HANDLE section_ = nullptr;
  const void* view_ = nullptr;
};

}  // namespace rh::command
