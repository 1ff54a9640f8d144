#include "platform/fake/ledger.h"

#include "base/text.h"
#include "platform/platform.h"
#include "platform/report.h"

namespace rh::fake {

size_t Ranges::first_behind(uintptr_t address) const {
  size_t low = 0, high = count_;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (ranges_[middle].end > address)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

bool Ranges::overlaps(Range range) const {
  size_t index = first_behind(range.start);
  return index < count_ && ranges_[index].start < range.end;
}

bool Ranges::covers(Range range) const {
  for (size_t index = first_behind(range.start); index < count_; ++index) {
    if (ranges_[index].start > range.start) return false;
    if (ranges_[index].end >= range.end) return true;
    range.start = ranges_[index].end;
  }
  return false;
}

void Ranges::open_slot(size_t index) {
  if (count_ == kMost) broken("the fake's ledger is full", 0, count_);
  for (size_t at = count_; at > index; --at) ranges_[at] = ranges_[at - 1];
  ++count_;
}

void Ranges::close_slots(size_t index, size_t count) {
  for (size_t at = index; at + count < count_; ++at) ranges_[at] = ranges_[at + count];
  count_ -= count;
}

void Ranges::add(Range range) {
  size_t index = first_behind(range.start);
  open_slot(index);
  ranges_[index] = range;
  bytes_ += range.size();
}

void Ranges::add_merged(Range range) {
  // The ranges that touch it: from the first that ends at the start or later.
  size_t first = first_behind(range.start == 0 ? 0 : range.start - 1), behind = first;
  for (; behind < count_ && ranges_[behind].start <= range.end; ++behind) {
    if (ranges_[behind].start < range.start) range.start = ranges_[behind].start;
    if (ranges_[behind].end > range.end) range.end = ranges_[behind].end;
    bytes_ -= ranges_[behind].size();
  }
  close_slots(first, behind - first);
  add(range);
}

void Ranges::remove(Range range) {
  for (size_t index; (index = first_behind(range.start)) < count_;) {
    Range whole = ranges_[index];
    if (whole.start >= range.end) return;
    close_slots(index, 1);
    bytes_ -= whole.size();
    if (whole.start < range.start) add({whole.start, range.start});
    if (whole.end > range.end) add({range.end, whole.end});
  }
}

bool Ranges::remove_exact(Range range) {
  size_t index = first_behind(range.start);
  if (index == count_ || ranges_[index].start != range.start || ranges_[index].end != range.end) return false;
  close_slots(index, 1);
  bytes_ -= range.size();
  return true;
}

void broken(const char* what, uintptr_t address, size_t size) {
  Text message;
  message << "fake platform: " << what << ": ";
  message.hex(address) << ", ";
  message.decimal(size) << " bytes";
  fatal(message);
}

Range checked_range(const char* what, uintptr_t address, size_t size) {
  bool whole_pages = address % platform::page_size() == 0 && size % platform::page_size() == 0;
  if (!whole_pages || size == 0 || address + size < address) broken(what, address, size);
  return {address, address + size};
}

}  // namespace rh::fake
