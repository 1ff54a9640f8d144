// The realm where address space is short: pieces lie anywhere, and the table covers all there is.
#include "arena/realm.h"

#include "arena/growth.h"

namespace rh {

size_t Realm::side_tables() const { return table_.committed() + sizes_.bytes(); }

bool Realm::open() {
  if (opened_) return true;
  constexpr size_t kTable = size_t{1} << (32 - kUnitShift);
  size_t size = align_up(kTable * sizeof(Span), platform::page_size());
  uintptr_t table = platform::reserve(size, platform::kPageSize);
  if (table == 0) return false;
  spans_.store(reinterpret_cast<Span*>(table));
  table_.open(table, table + size);
  if (!table_.commit_to(size)) {
    platform::release(table, size);
    return false;
  }
  span_.store(UINTPTR_MAX);
  window_end_ = uint64_t{1} << 32;
  opened_ = true;
  return true;
}

bool Realm::commit_tables_to(uintptr_t) { return true; }

void Realm::renew_tables() {}

bool Realm::reserve_piece(size_t size, Growth* growth) {
  uintptr_t start = platform::reserve(size, kExactSizes ? PieceNotes::kPieceAlign : kUnitSize);
  if (start == 0) return false;
  if (!may_take(start, size) || !sizes_.make(start, start + size)) {
    platform::release(start, size);
    return false;
  }
  if (start != growth->end) growth->start = start;
  growth->end = start + size;
  growth->piece = {start, start + size};
  return true;
}

}  // namespace rh
