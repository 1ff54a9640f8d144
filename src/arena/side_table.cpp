#include "arena/side_table.h"

#include "platform/platform.h"

namespace rh {

void SideTable::open(uintptr_t start, uintptr_t end) {
  start_ = frontier_ = start;
  end_ = end;
}

bool SideTable::reserve_to(size_t bytes) {
  size_t more = start_ + bytes - end_;
  if (start_ + bytes <= end_) return true;
  bool reserved = renews_ ? platform::renew(end_, more) : platform::reserve_at(end_, more) == platform::Reserve::done;
  if (!reserved) return false;
  end_ += more;
  return true;
}

void SideTable::unreserve(size_t to_bytes) {
  uintptr_t end = start_ + to_bytes;
  if (end < end_) platform::release(end, end_ - end);
  end_ = end;
}

bool SideTable::renew(size_t bytes) {
  renews_ = true;
  frontier_ = start_ + bytes;
  return frontier_ == end_ || platform::renew(frontier_, end_ - frontier_);
}

void SideTable::release() {
  if (end_ != start_) platform::release(start_, end_ - start_);
}

bool SideTable::commit_to(size_t bytes) {
  uintptr_t to = start_ + bytes;
  if (to <= frontier_) return true;
  if (!platform::commit(frontier_, to - frontier_)) return false;
  frontier_ = to;
  return true;
}

}  // namespace rh
