// Where a window may lie that the user asked for, and where one that may lie anywhere.
#pragma once

#include "arena/growth.h"
#include "arena/window.h"

namespace rh {

// Windows of `size` bytes at `first`, and at each kPlaceStep from there to `last`, are what was asked for; there is
// none when `last` is less than `first`.
struct Places {
  uintptr_t first, last, size;
};
inline constexpr uintptr_t kPlaceStep = 16 * kMiB;
Places places_of(const Window& window);

// How address space of so many bits is divided, far from where the OS puts images, stacks and mappings: where the table
// may lie, how far behind it the notes of sizes, and behind them the window. Two realms of a process begin and have
// their tables at different places, whatever the random numbers are.
struct Layout {
  static constexpr uint64_t kPlaces = 1024;
  uint64_t window, apart, lowest, table_room, notes_room;

  explicit constexpr Layout(unsigned bits)
      : window(uint64_t{1} << (bits - 1)), apart(uint64_t{1} << (bits - 12)), lowest(uint64_t{1} << (bits - 3)),
        table_room(align_up(table_bytes(window, platform::kMostPageSize), apart) + apart / 2),
        notes_room(align_up(note_bytes(window, platform::kMostPageSize), apart) + apart / 4) {}

  constexpr uint64_t place(uint64_t random) const { return lowest + (random % kPlaces) * apart; }
  constexpr uint64_t highest_base() const { return lowest + kPlaces * apart + table_room + notes_room; }
};

// The longest first. What systems have: 47 bits and more; 42 and 39 with one level of page tables less, as 64-bit ARM
// may; 36 with two.
inline constexpr unsigned kAddressBits[] = {47, 42, 39, 36};

// What a window comes upon it steps over; tables have to follow on. Linux puts programs at two thirds.
constexpr bool fits(unsigned bits) {
  const Layout layout{bits};
  const uint64_t end = uint64_t{1} << bits;
  return layout.highest_base() < end / 3 * 2 && layout.highest_base() + layout.window < end &&
         layout.apart / 4 % platform::kReserveGrain == 0 && layout.apart / 4 % platform::kMostPageSize == 0;
}
static_assert(Layout{kAddressBits[0]}.window == kMostWindow);
static_assert(fits(kAddressBits[0]) && fits(kAddressBits[1]) && fits(kAddressBits[2]) && fits(kAddressBits[3]));

}  // namespace rh
