// Where the realm's addresses lie and how many they may become, on 64-bit; to be chosen before first use.
#pragma once

#include <cstdint>

namespace rh {

// Where the window lies anywhere, that is the default too.
inline constexpr uint64_t kMostWindow = uint64_t{64} << 40;

struct Window {
  enum class Place { anywhere, low, image, address };
  uint64_t size = 0;  // 0: the default
  Place place = Place::anywhere;
  uint64_t address = 0;
};

}  // namespace rh
