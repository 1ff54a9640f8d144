#include "arena/realm.h"

#include "arena/growth.h"

namespace rh {

alignas(64) constinit Realm g_realm;

void Realm::release_all() {
  for (size_t index = 0; index < stretches_.count(); ++index) {
    Stretches::Range stretch = stretches_[index];
    if (!stretch.empty()) platform::release(stretch.start, stretch.end - stretch.start);
  }
  table_.release();
  sizes_.release_all();
  span_.store(0);
}

bool Realm::set_window(const Window& window) {
  if (opened_) return false;
  wanted_ = window;
  return true;
}

bool Realm::is_valid() const {
  size_t taken = 0;
  for (size_t index = 0; index < stretches_.count(); ++index) taken += stretches_[index].end - stretches_[index].start;
  bool has_descriptors = !k64Bit || span_.load() <= frontier_ - base();
  return taken == reserved_ && committed_ <= reserved_ && frontier_ <= reserved_end_ && has_descriptors;
}

Realm::Run Realm::run_from(const Span* span) const {
  Stretches::Range run = stretches_.next(address(span), base() + span_.load());
  return {at(run.start), at(run.end)};
}

void Realm::note_taken(uintptr_t start, size_t size) {
  stretches_.add({start, start + size});
  reserved_ += size;
}

Span* Realm::piece(size_t index, Units* length) const {
  Stretches::Range piece = stretches_[index];
  bool in_use = frontier_ < reserved_end_ && piece.end == reserved_end_;
  if (piece.end == 0 || in_use) return nullptr;
  *length = Units{(piece.end - piece.start) >> kUnitShift};
  return at(piece.start);
}

void Realm::release_piece(size_t index) {
  Stretches::Range piece = stretches_[index];
  size_t size = piece.end - piece.start;
  stretches_.remove(index);
  if (piece.end == reserved_end_) frontier_ = reserved_end_ = 0;
  reserved_ -= size;
  committed_ -= size;
  sizes_.release(piece.start, piece.end);
  platform::release(piece.start, size);
}

Span* Realm::extend(Units least, Units wanted, Units* got) {
  if (!opened_ && !open()) return nullptr;
  if (reserved_end_ - frontier_ < least.bytes() && !reserve_more(least.bytes())) return nullptr;
  uintptr_t start = frontier_;
  size_t room = reserved_end_ - start;
  size_t size = commit_some(least.bytes(), wanted.bytes() < room ? wanted.bytes() : room);
  if (size == 0) return nullptr;
  *got = Units{size >> kUnitShift};
  return at(start);
}

void Realm::go_back_to(const RealmCopy& copy) {
  __builtin_memcpy(static_cast<void*>(this), copy.bytes_, sizeof(*this));
  if (!opened_) return;
  if (frontier_ != reserved_end_ && !platform::renew(frontier_, reserved_end_ - frontier_)) frontier_ = reserved_end_;
  renew_tables();
}

// Commits from the frontier: as much as wanted, or as little as will do where the OS is short.
size_t Realm::commit_some(size_t least, size_t wanted) {
  size_t size = wanted > least ? wanted : least;
  for (;;) {
    if (commit_tables_to(frontier_ + size) && platform::commit(frontier_, size)) break;
    if (size == least) return 0;
    size = align_up(size / 2 > least ? size / 2 : least, kUnitSize);
  }
  frontier_ += size;
  committed_ += size;
  if constexpr (k64Bit) span_.store(frontier_ - base());
  return size;
}

bool Realm::reserve_more(size_t least) {
  size_t exact = align_up(least, kPieceGrain);
  if (exact < least) return false;
  size_t size = reserved_ < kStride ? reserved_ : reserved_ / 2;
  if (size < kFirstPiece) size = kFirstPiece;
  if (size > kLargestPiece) size = kLargestPiece;
  if (size < exact) size = exact;
  for (size = align_up(size, kPieceGrain);; size = align_up(size / 2, kPieceGrain)) {
    if (size < exact) size = exact;
    if (reserve_piece(size)) return true;
    if (size == exact) return false;
  }
}

}  // namespace rh
