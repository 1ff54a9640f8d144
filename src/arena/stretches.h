// The address space taken for blocks. 64-bit: pieces that follow each other are one stretch; ends change, entries are
// never removed. 32-bit: each piece is one; one that was given back leaves an empty entry. May be read while it
// changes.
#pragma once

#include "base/config.h"
#include "base/word.h"

namespace rh {

class Stretches {
 public:
  constexpr Stretches() = default;

  struct Range {
    uintptr_t start, end;
    bool empty() const { return start == end; }
  };

  // Whether there is an entry left for the range.
  bool have_room_for(Range range) { return entry_for(range) != nullptr; }
  void add(Range range);
  void remove(size_t index);

  size_t count() const { return count_.load(); }
  Range operator[](size_t index) const { return {entries_[index].start.load(), entries_[index].end.load()}; }

  bool cover(uintptr_t address) const;

  // What is left from `from` on of the stretch that lies there, or the next, before `limit`; an empty one when there is
  // none. Takes longer the more stretches there are.
  Range next(uintptr_t from, uintptr_t limit) const;

 private:
  struct Entry {
    Word<uintptr_t> start, end;
  };

  Entry* entry_for(Range range);

  static constexpr size_t kMost = k64Bit ? 256 : 1024;
  Entry entries_[kMost];
  Word<size_t> count_;
};

}  // namespace rh
