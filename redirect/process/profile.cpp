#include "redirect/process/profile.h"

#include <reheap/reheap.h>

namespace rh::redirect {

static bool serve(const ProfileRequest& request) {
  if (request.path[0] == 0) return rh_profile_start(request.every);
  rh_profile_stop();
  return rh_profile_write(request.path);
}

}  // namespace rh::redirect

extern "C" DWORD WINAPI rh_redirect_profile(void* request) {
  using namespace rh::redirect;
  const bool done = serve(*static_cast<const ProfileRequest*>(request));
  return static_cast<DWORD>(done ? ProfileAnswer::done : ProfileAnswer::refused);
}
