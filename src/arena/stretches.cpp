#include "arena/stretches.h"

namespace rh {

bool Stretches::cover(uintptr_t address) const {
  for (size_t index = 0, count = count_.load_acquire(); index < count; ++index) {
    const Entry& entry = entries_[index];
    if (address >= entry.start.load() && address < entry.end.load()) return true;
  }
  return false;
}

Stretches::Range Stretches::next(uintptr_t from, uintptr_t limit) const {
  Range next = {limit, limit};
  for (size_t index = 0, count = count_.load_acquire(); index < count; ++index) {
    uintptr_t start = entries_[index].start.load(), end = entries_[index].end.load();
    if (start < from) start = from;
    if (start >= end || start >= next.start) continue;
    next = {start, end < limit ? end : limit};
  }
  return next;
}

// The entry that a piece goes into; null when there is none left. Systems fill their space from below or from above: on
// 64-bit a piece may follow the last one or come before it.
Stretches::Entry* Stretches::entry_for(Range range) {
  size_t count = count_.load();
  if constexpr (k64Bit) {
    Entry* last = count != 0 ? &entries_[count - 1] : nullptr;
    bool follows = last != nullptr && (last->end.load() == range.start || last->start.load() == range.end);
    if (follows) return last;
  } else {
    for (size_t index = 0; index < count; ++index)
      if (entries_[index].end.load() == 0) return &entries_[index];
  }
  return count < kMost ? &entries_[count] : nullptr;
}

// An entry says nothing untrue between the two stores.
void Stretches::add(Range range) {
  Entry* entry = entry_for(range);
  if (entry->start.load() == range.end) return entry->start.store(range.start);
  if (entry->end.load() == 0) entry->start.store(range.start);
  entry->end.store_release(range.end);
  size_t count = count_.load();
  if (entry == &entries_[count]) count_.store_release(count + 1);
}

void Stretches::remove(size_t index) {
  entries_[index].end.store(0);
  entries_[index].start.store(0);
}

}  // namespace rh
