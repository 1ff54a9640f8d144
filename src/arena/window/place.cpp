#include "arena/window/place.h"

namespace rh {

Places places_of(const Window& window) {
  constexpr uintptr_t kReach = uintptr_t{2} << 30;  // of a signed 32-bit displacement
  uintptr_t size = align_up(window.size != 0 ? window.size : 1024 * kMiB, commit_grain());
  uintptr_t first = window.address, end = window.address + size;
  if (window.place == Window::Place::low) {
    first = kPlaceStep;
    end = uintptr_t{4} << 30;
  } else if (window.place == Window::Place::image) {
    uintptr_t image = platform::image_address();
    first = align_up(image > kReach ? image - kReach + kPlaceStep : kPlaceStep, kPlaceStep);
    end = image + kReach - kPlaceStep;
  }
  // A little above the bottom of the address space there is less than the reach below an image.
  if (size > kReach * 2 || size > end) return {1, 0, size};
  return {align_up(first, commit_grain()), end - size, size};
}

}  // namespace rh
