// Marks every page of a range, to check later whether the marks are still there or all of it reads as zero.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/bits.h"
#include "platform/platform.h"

namespace rh::pages {

// The places checked in a page: its ends and somewhere between, always the same for the same page.
template <typename Visit> void for_each_word(uintptr_t address, size_t size, Visit visit) {
  for (uintptr_t page = address; page < address + size; page += platform::kPageSize) {
    uint64_t* words = reinterpret_cast<uint64_t*>(page);
    size_t last = platform::kPageSize / sizeof(uint64_t) - 1;
    visit(words[0], page);
    visit(words[1 + mix(page) % (last - 1)], page + 1);
    visit(words[last], page + 2);
  }
}

inline void mark(uintptr_t address, size_t size, uint64_t seed) {
  for_each_word(address, size, [seed](uint64_t& word, uintptr_t place) { word = mix(place ^ seed) | 1; });
}

inline bool are_marked(uintptr_t address, size_t size, uint64_t seed) {
  bool good = true;
  for_each_word(address, size, [&](uint64_t& word, uintptr_t place) { good &= word == (mix(place ^ seed) | 1); });
  return good;
}

inline bool are_zero(uintptr_t address, size_t size) {
  bool good = true;
  for_each_word(address, size, [&](uint64_t& word, uintptr_t) { good &= word == 0; });
  return good;
}

}  // namespace rh::pages
