#pragma once

#include <cstddef>
#include <cstdint>

namespace rh {

// A table that runs parallel to the realm's memory, beginning where it does: reserved along with it, committed as used.
class SideTable {
 public:
  // Has address space up to `end` already, or none yet (end == start).
  void open(uintptr_t start, uintptr_t end);
  // Whether there is address space for the first `bytes` of it now, more only right behind what there is.
  bool reserve_to(size_t bytes);
  // Whether the first `bytes` of it are readable now.
  bool commit_to(size_t bytes);
  // Takes back what reserve_to got last.
  void unreserve(size_t to_bytes);
  // Another thread may have extended it without the caller's knowing: what lies behind the first `bytes` is renewed,
  // now and from now on.
  bool renew(size_t bytes);
  void release();
  size_t reserved() const { return end_ - start_; }
  size_t committed() const { return frontier_ - start_; }

 private:
  uintptr_t start_ = 0, frontier_ = 0, end_ = 0;
  bool renews_ = false;
};

}  // namespace rh
