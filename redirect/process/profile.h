// A profile of a process that runs, as its launcher asks for it from outside: by a thread that begins in there at
// `rh_redirect_profile`, with one of these.
#pragma once

#include <windows.h>

#include <cstdint>

namespace rh::redirect {

struct ProfileRequest {
  uint64_t every;  // bytes out of which one is sampled; 0: as the option says
  char path[480];  // where it is to be written, and then it ends; empty: it is to begin
};

// The thread's exit code. 0, which nobody answers: the process ends.
enum class ProfileAnswer : DWORD { none, done, refused };

inline constexpr char profile_entry[] = "rh_redirect_profile";

}  // namespace rh::redirect

// In the library; found by its name.
extern "C" DWORD WINAPI rh_redirect_profile(void* request);
