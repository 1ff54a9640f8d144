#include "arena/realm.h"

#include <atomic>

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
  return open() ? enter(prepare(least, wanted), got) : nullptr;
}

// Dense memory of a heap so large that the rest of a huge page is no more than a twelfth of it. Hardened builds have
// guards everywhere, which take huge pages apart; on 32-bit pieces are short.
bool Realm::wishes_huge(Fresh fresh) const {
  constexpr bool kCan = k64Bit && !kHardened && !platform::kChargesUntouched;
  return kCan && fresh == Fresh::dense && huge_pages_ == HugePages::dense &&
         committed_ / 12 >= platform::huge_page_size();
}

// Of a huge page that is committed in parts the first touch comes too early to make it one.
bool Realm::ends_with_huge(const Growth& growth, Fresh fresh) const {
  const bool all = huge_pages_ == HugePages::all && fresh != Fresh::limited;
  return growth.wishes_huge || (all && committed_ >= 2 * platform::huge_page_size());
}

Realm::Growth Realm::prepare(Units least, Units wanted, Fresh fresh) {
  Growth growth = begin();
  size_t bytes = align_up(least.bytes(), commit_grain()), most = align_up(wanted.bytes(), commit_grain());
  if (bytes < least.bytes()) return growth;
  if (growth.end - growth.start < bytes && !reserve_more(bytes, &growth)) return growth;
  growth.wishes_huge = wishes_huge(fresh);
  if (ends_with_huge(growth, fresh)) most = align_up(growth.start + most, platform::huge_page_size()) - growth.start;
  size_t room = growth.end - growth.start;
  growth.committed = commit_some(growth.start, bytes, most < room ? most : room);
  const bool asks = growth.committed != 0 && (growth.wishes_huge || huge_pages_ == HugePages::all);
  if (asks) platform::prefer_huge(growth.start, growth.committed);
  return growth;
}

Span* Realm::enter(const Growth& growth, Units* got) {
  if (frontier_ != growth.frontier || reserved_end_ != growth.reserved_end) return nullptr;
  if (!growth.piece.empty()) note_taken(growth.piece.start, growth.piece.end - growth.piece.start);
  frontier_ = growth.start + growth.committed;
  reserved_end_ = growth.end;
  if (growth.committed == 0) return nullptr;
  committed_ += growth.committed;
  if (growth.wishes_huge) young_ = {growth.start, frontier_};
  if constexpr (k64Bit) span_.store_release(frontier_ - base());
  *got = Units{growth.committed >> kUnitShift};
  return at(growth.start);
}

void Realm::go_back_to(const RealmCopy& copy) {
  __builtin_memcpy(static_cast<void*>(this), copy.bytes_, sizeof(*this));
  if (!opened_) return;
  if (frontier_ != reserved_end_ && !platform::renew(frontier_, reserved_end_ - frontier_)) frontier_ = reserved_end_;
  renew_tables();
}

// What it had committed behind the frontier is committed again before use; nobody has written to it. But how far it had
// come with the tables is not known.
void Realm::forget_growth() {
  if (opened_) renew_tables();
}

// As much as wanted, or as little as will do where the OS is short; 0 when it has not even that.
size_t Realm::commit_some(uintptr_t start, size_t least, size_t wanted) {
  size_t size = wanted > least ? wanted : least;
  for (;;) {
    if (commit_tables_to(start + size) && platform::commit(start, size)) break;
    if (size == least) return 0;
    size = align_up(size / 2 > least ? size / 2 : least, commit_grain());
  }
  // The descriptors that are written when the memory is entered, and as what is beyond the least is handed out.
  touch_descriptors(start, start + kUnitSize);
  touch_descriptors(start + (least < size ? least : size - kUnitSize), start + size);
  return size;
}

Stretches::Range Realm::take_young() {
  const Stretches::Range young = young_;
  young_ = {};
  return young;
}

// What follows is asked for too, so that sparse pieces that follow each other are one mapping; a huge page that begins
// before this one cannot be.
void Realm::keep_sparse(uintptr_t start, size_t size) {
  constexpr unsigned kMost = 4096;
  static constinit std::atomic<unsigned> times{0};
  if (times.load(std::memory_order_relaxed) >= kMost) return;
  times.fetch_add(1, std::memory_order_relaxed);
  const Stretches::Range range = stretches_.next(start, align_up(start + size, platform::huge_page_size()));
  platform::prefer_small(range.start, range.end - range.start);
}

// So that the first write to each page of them, under the arena's lock, is no page fault. They read as zero.
void Realm::touch_descriptors(uintptr_t start, uintptr_t end) {
  uintptr_t behind = address_of(at(end));
  for (uintptr_t here = address_of(at(start)); here < behind;
       here = align_down(here, platform::kPageSize) + platform::kPageSize)
    *reinterpret_cast<volatile unsigned char*>(here) = 0;
}

bool Realm::reserve_more(size_t least, Growth* growth) {
  const size_t grain = piece_grain();
  size_t exact = align_up(least, grain);
  if (exact < least) return false;
  size_t size = reserved_ < kStride ? reserved_ : reserved_ / 2;
  if (size < kFirstPiece) size = kFirstPiece;
  if (size > kLargestPiece) size = kLargestPiece;
  if (size < exact) size = exact;
  for (size = align_up(size, grain);; size = align_up(size / 2, grain)) {
    if (size < exact) size = exact;
    if (reserve_piece(size, growth)) return true;
    if (size == exact) return false;
  }
}

}  // namespace rh
