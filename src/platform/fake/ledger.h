// Records which addresses are in which state. A broken precondition ends in a message of the ledger and abort().
#pragma once

#include <cstddef>
#include <cstdint>

namespace rh::fake {

struct Range {
  uintptr_t start = 0, end = 0;
  size_t size() const { return end - start; }
};

// Ranges that do not overlap, in address order.
class Ranges {
 public:
  constexpr Ranges() = default;
  size_t count() const { return count_; }
  const Range& operator[](size_t index) const { return ranges_[index]; }
  size_t bytes() const { return bytes_; }

  // The first range that ends behind `address`; count() when there is none.
  size_t first_behind(uintptr_t address) const;
  bool overlaps(Range range) const;
  bool covers(Range range) const;

  void add(Range range);         // overlaps no other
  void add_merged(Range range);  // merges with the ranges it overlaps or touches
  void remove(Range range);      // removes what lies in it
  bool remove_exact(Range range);

 private:
  static constexpr size_t kMost = 16 * 1024;
  void open_slot(size_t index);
  void close_slots(size_t index, size_t count);

  size_t count_ = 0;
  size_t bytes_ = 0;
  Range ranges_[kMost] = {};
};

[[noreturn]] void broken(const char* what, uintptr_t address, size_t size);

// Ends the process unless both are multiples of a page, and the size is not 0.
Range checked_range(const char* what, uintptr_t address, size_t size);

}  // namespace rh::fake
