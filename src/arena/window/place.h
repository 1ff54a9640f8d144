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

// Far from where the OS puts images, stacks and mappings: where the table is to lie, by a random number, how far behind
// it the notes of sizes, and behind them the window. Two realms of a process begin and have their tables at different
// places, whatever the numbers are.
inline constexpr uint64_t kApart = uint64_t{32} << 30;
inline constexpr uint64_t kTableRoom = align_up(table_bytes(kMostWindow), kApart) + kApart / 2;
inline constexpr uint64_t kNotesRoom = align_up(note_bytes(kMostWindow), kApart) + kApart / 4;
inline constexpr uint64_t kLowestPlace = uint64_t{16} << 40;
inline constexpr uint64_t kPlaces = 1024;
inline uintptr_t sparse_place(uint64_t random) { return kLowestPlace + (random % kPlaces) * kApart; }

// What a window comes upon it steps over; tables have to follow on. Linux puts programs at two thirds of 47 bits.
inline constexpr uint64_t kHighestBase = kLowestPlace + kPlaces * kApart + kTableRoom + kNotesRoom;
static_assert(kHighestBase < uint64_t{85} << 40, "no program lies where the tables grow");
static_assert(kHighestBase + kMostWindow < uint64_t{1} << 47, "windows lie within 47 bits");

}  // namespace rh
