#include "places.h"

namespace coherence::places {

namespace {

constexpr unsigned kTableBits = 14;
constexpr size_t kMost = size_t{1} << kTableBits;
constexpr size_t kTries = 64;

constinit Place g_places[kMost] = {};
constinit bool g_taken[kMost] = {};
constinit uint64_t g_unplaced = 0;

}  // namespace

void note(uintptr_t address, bool in_shared_hold) {
  size_t at = (address * 0x9E3779B97F4A7C15u) >> (64 - kTableBits);
  for (size_t tried = 0; tried < kTries; ++tried) {
    Place& place = g_places[(at + tried) % kMost];
    if (place.address == 0) place.address = address;
    if (place.address != address) continue;
    ++place.misses;
    place.in_shared_holds += in_shared_hold;
    return;
  }
  ++g_unplaced;
}

const Place* take_worst() {
  size_t worst = kMost;
  for (size_t i = 0; i < kMost; ++i)
    if (!g_taken[i] && g_places[i].misses != 0 && (worst == kMost || g_places[i].misses > g_places[worst].misses))
      worst = i;
  if (worst == kMost) return nullptr;
  g_taken[worst] = true;
  return &g_places[worst];
}

uint64_t unplaced() { return g_unplaced; }

}  // namespace coherence::places
