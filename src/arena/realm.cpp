#include "arena/realm.h"

#include "base/check.h"
#include "platform/platform.h"
#include "platform/report.h"

namespace rh {

using platform::kPageSize;
using platform::Reserve;

alignas(64) constinit Realm g_realm;

namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Pieces are a multiple of this: their descriptors can be reserved by themselves.
constexpr size_t kPieceGrain = k64Bit && platform::kReserveGrain > kPageSize
                                   ? kMiB*(platform::kReserveGrain / kPageSize)
                                   : kMiB;
static_assert(!k64Bit || (kPieceGrain >> kUnitShift) * sizeof(Span) % platform::kReserveGrain == 0,
              "the table of a piece is a reservation");
static_assert(kPieceGrain / kBlockAlign % platform::kReserveGrain == 0, "and so are its notes");
// What is reserved counts where a program locks all its memory (mlockall), and that may be little. So it begins with
// little where that costs no more than a call.
constexpr size_t kFirstPiece = !k64Bit ? 4 * kMiB : kPieceGrain > kMiB ? 64 * kMiB : 2 * kMiB;
constexpr size_t kStride = 64 * kMiB;
constexpr size_t kLargestPiece = k64Bit ? 1024 * kMiB : 16 * kMiB;

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kTiB = uint64_t{1} << 40;
constexpr uint64_t kWholeWindow = 64 * kGiB;

constexpr size_t table_bytes(uintptr_t heap_bytes) {
  return align_up((heap_bytes >> kUnitShift) * sizeof(Span), kPageSize);
}

constexpr size_t note_bytes(uintptr_t heap_bytes) {
  return kExactSizes ? align_up(heap_bytes / kBlockAlign, kPageSize) : 0;
}

}  // namespace

void SideTable::open(uintptr_t start, uintptr_t end) {
  start_ = frontier_ = start;
  end_ = end;
}

bool SideTable::reserve_to(size_t bytes) {
  size_t more = start_ + bytes - end_;
  if (start_ + bytes <= end_) return true;
  bool reserved =
      renews_ ? platform::renew(end_, more) : platform::reserve_at(end_, more) == Reserve::done;
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

// Notes of pieces that follow each other are given back as one.
void Realm::release_piece_notes() {
  constexpr size_t kStep = kPieceAlign >> kNoteShift;
  for (size_t index = 0; index < kPieces;) {
    uintptr_t start = address_of(piece_notes_[index++].load());
    if (start == 0) continue;
    uintptr_t end = start + kStep;
    for (; index < kPieces && address_of(piece_notes_[index].load()) == end; ++index) end += kStep;
    platform::release(start, end - start);
  }
}

void Realm::release_all() {
  for (size_t index = 0; index < stretch_count_.load(); ++index) {
    uintptr_t start = stretches_[index].start.load();
    if (start != 0) platform::release(start, stretches_[index].end.load() - start);
  }
  table_.release();
  notes_.release();
  release_piece_notes();
  span_.store(0);
}

bool Realm::set_window(const Window& window) {
  if (opened_) return false;
  wanted_ = window;
  return true;
}

bool Realm::covers(const void* pointer) const {
  uintptr_t address = address_of(pointer);
  for (size_t index = 0, count = stretch_count_.load_acquire(); index < count; ++index) {
    const Stretch& stretch = stretches_[index];
    if (address >= stretch.start.load() && address < stretch.end.load()) return true;
  }
  return false;
}

Realm::Run Realm::run_from(const Span* span) const {
  uintptr_t from = address(span), limit = base() + span_.load();
  uintptr_t first = limit, end = limit;
  for (size_t index = 0, count = stretch_count_.load_acquire(); index < count; ++index) {
    uintptr_t start = stretches_[index].start.load(), behind = stretches_[index].end.load();
    if (start < from) start = from;
    if (start >= behind || start >= first) continue;
    first = start;
    end = behind < limit ? behind : limit;
  }
  return {spans() + ((first - base()) >> kUnitShift), spans() + ((end - base()) >> kUnitShift)};
}

// The entry that a piece goes into; null when there is none left. Systems fill their space from below or from above: on
// 64-bit a piece may follow the last one or come before it.
Realm::Stretch* Realm::stretch_for(uintptr_t start, uintptr_t end) {
  size_t count = stretch_count_.load();
  if constexpr (k64Bit) {
    Stretch* last = count != 0 ? &stretches_[count - 1] : nullptr;
    if (last != nullptr && (last->end.load() == start || last->start.load() == end)) return last;
  } else {
    for (size_t index = 0; index < count; ++index) {
      if (stretches_[index].end.load() == 0) return &stretches_[index];
    }
  }
  return count < kMostStretches ? &stretches_[count] : nullptr;
}

// May be read meanwhile: an entry says nothing untrue between the two stores.
void Realm::note_taken(uintptr_t start, uintptr_t size) {
  Stretch* stretch = stretch_for(start, start + size);
  reserved_ += size;
  if (stretch->start.load() == start + size) return stretch->start.store(start);
  if (stretch->end.load() == 0) stretch->start.store(start);
  stretch->end.store_release(start + size);
  size_t count = stretch_count_.load();
  if (stretch == &stretches_[count]) stretch_count_.store_release(count + 1);
}

Span* Realm::piece(size_t index, Units* length) const {
  uintptr_t start = stretches_[index].start.load(), end = stretches_[index].end.load();
  if (end == 0 || (frontier_ < reserved_end_ && end == reserved_end_)) return nullptr;
  *length = Units{(end - start) >> kUnitShift};
  return spans() + ((start - base()) >> kUnitShift);
}

void Realm::release_piece(size_t index) {
  uintptr_t start = stretches_[index].start.load(), end = stretches_[index].end.load();
  stretches_[index].end.store(0);
  stretches_[index].start.store(0);
  if (end == reserved_end_) frontier_ = reserved_end_ = 0;
  reserved_ -= end - start;
  committed_ -= end - start;
  release_notes_of(start, end);
  platform::release(start, end - start);
}

Span* Realm::extend(Units least, Units wanted, Units* got) {
  if (!opened_ && !open()) return nullptr;
  if (reserved_end_ - frontier_ < least.bytes() && !reserve_more(least.bytes())) return nullptr;
  uintptr_t start = frontier_;
  size_t room = reserved_end_ - start;
  size_t size = commit_some(least.bytes(), wanted.bytes() < room ? wanted.bytes() : room);
  if (size == 0) return nullptr;
  *got = Units{size >> kUnitShift};
  return spans() + ((start - base()) >> kUnitShift);
}

void Realm::go_back_to(const RealmCopy& copy) {
  __builtin_memcpy(static_cast<void*>(this), copy.bytes_, sizeof(*this));
  if (!opened_) return;
  if (frontier_ != reserved_end_ && !platform::renew(frontier_, reserved_end_ - frontier_)) {
    frontier_ = reserved_end_;
  }
  if constexpr (!k64Bit) return;
  // The last page of descriptors holds more than there are units.
  size_t used = span_.load(), descriptors = table_bytes(used);
  __builtin_memset(static_cast<void*>(spans() + count()), 0, descriptors - count() * sizeof(Span));
  // Without fresh tables there is no fresh memory either.
  if (!table_.renew(descriptors) || !notes_.renew(note_bytes(used)))
    window_end_ = frontier_ = reserved_end_;
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

#if UINTPTR_MAX > 0xffffffff

void Realm::release_notes_of(uintptr_t, uintptr_t) {}

size_t Realm::side_tables() const { return table_bytes(committed_) + note_bytes(committed_); }

bool Realm::open() {
  opened_ = true;
  bool placed = wanted_.place != Window::Place::anywhere && open_window();
  if (!placed && wanted_.place != Window::Place::anywhere) {
    Text message;
    report(message << "REHEAP_WINDOW_AT: no room there; the heap lies where the system puts it");
    wanted_.place = Window::Place::anywhere;
  }
  opened_ = placed || open_anywhere();
  if (opened_ && wanted_.size > window_size()) wanted_.size = window_size();
  return opened_;
}

bool Realm::open_anywhere() {
  if (platform::places_freely() && open_sparse()) return true;
  uint64_t size = wanted_.size != 0 && wanted_.size < kWholeWindow ? wanted_.size : kWholeWindow;
  for (; size >= 16 * kMiB; size /= 2) {
    if (open_whole(size)) return true;
  }
  return false;
}

// A window at a random place far from where the OS puts images, stacks and mappings, nothing of it reserved yet. It is
// longer than any heap: others may take what lies before it.
bool Realm::open_sparse() {
  constexpr uint64_t kLowest = 16 * kTiB, kApart = 32 * kGiB;
  constexpr uint64_t kPlaces = 1024;  // up to 48 TiB, and their windows within 47 bits
  // Two realms of a process begin and have their tables at different places, whatever the numbers are.
  constexpr uint64_t kTableRoom = align_up(table_bytes(kMostWindow), kApart) + kApart / 2;
  uint64_t size = wanted_.size != 0 ? align_up(wanted_.size, kPieceGrain) : kMostWindow;
  uint64_t random = platform::random_seed();
  for (int attempt = 0; attempt < 8; ++attempt, random = mix(random)) {
    uintptr_t table = kLowest + (random % kPlaces) * kApart;
    base_.store(table + kTableRoom);
    window_end_ = base() + size;
    set_tables(table, table, window_end_, window_end_);
    frontier_ = reserved_end_ = base();
    if (reserve_more(kUnitSize)) return true;
  }
  return false;
}

// A window reserved in one piece where the OS likes it.
bool Realm::open_whole(uintptr_t size) {
  uintptr_t base = platform::reserve(size, kUnitSize);
  if (base == 0) return false;
  if (open_at(base, size)) return true;
  platform::release(base, size);
  return false;
}

void Realm::set_tables(uintptr_t table, uintptr_t table_end, uintptr_t notes, uintptr_t notes_end) {
  spans_.store(reinterpret_cast<Span*>(table));
  table_.open(table, table_end);
  notes_at_.store(reinterpret_cast<uint8_t*>(notes - (base() >> kNoteShift)));
  notes_.open(notes, notes_end);
}

bool Realm::reserve_tables_to(uintptr_t end) {
  size_t notes_before = notes_.reserved();
  if (!notes_.reserve_to(note_bytes(end - base()))) return false;
  if (table_.reserve_to(table_bytes(end - base()))) return true;
  notes_.unreserve(notes_before);
  return false;
}

bool Realm::commit_tables_to(uintptr_t end) {
  return table_.commit_to(table_bytes(end - base())) && notes_.commit_to(note_bytes(end - base()));
}

// Takes over a window already reserved.
bool Realm::open_at(uintptr_t base, uintptr_t size) {
  // One reservation for both: there is nothing to undo between them.
  size_t both = table_bytes(size) + note_bytes(size);
  uintptr_t table = platform::reserve(both, kPageSize);
  if (table == 0) return false;
  base_.store(base);
  frontier_ = base;
  uintptr_t notes = table + table_bytes(size);
  set_tables(table, notes, notes, table + both);
  window_end_ = reserved_end_ = base + size;
  note_taken(base, size);
  whole_ = true;
  return true;
}

// The window the user asked for: the whole of it is taken at once, so that nobody else can settle in it.
bool Realm::open_window() {
  constexpr uintptr_t kStep = 16 * kMiB;
  constexpr uintptr_t kReach = uintptr_t{2} << 30;  // of a signed 32-bit displacement
  uintptr_t size = align_up(wanted_.size != 0 ? wanted_.size : 1024 * kMiB, kUnitSize);
  uintptr_t first = wanted_.address, end = wanted_.address + size;
  if (wanted_.place == Window::Place::low) {
    first = kStep;
    end = uintptr_t{4} << 30;
  } else if (wanted_.place == Window::Place::image) {
    uintptr_t image = platform::image_address();
    first = align_up(image > kReach ? image - kReach + kStep : kStep, kStep);
    end = image + kReach - kStep;
  }
  // A little above the bottom of the address space there is less than the reach below an image.
  if (size > kReach * 2 || size > end) return false;
  for (uintptr_t base = align_up(first, kUnitSize); base <= end - size; base += kStep) {
    if (platform::reserve_at(base, size) != Reserve::done) continue;
    if (open_at(base, size)) return true;
    platform::release(base, size);
  }
  return false;
}

// Appends to the window. What someone else has settled on is stepped over, in steps that grow with it: its descriptors
// can be read, and say nothing.
bool Realm::reserve_piece(size_t size) {
  if (whole_) return false;
  uintptr_t step = kStride;
  for (uintptr_t at = reserved_end_; at + size <= window_end_; at += step) {
    step = align_up((at - reserved_end_) / 8, kStride);
    if (step == 0) step = kStride;
    if (!may_take(at, size)) return false;
    Reserve result = platform::reserve_at(at, size);
    if (result == Reserve::refused) return false;
    if (result == Reserve::occupied) continue;
    if (!reserve_tables_to(at + size)) {
      platform::release(at, size);
      return false;
    }
    if (at != reserved_end_) frontier_ = at;
    reserved_end_ = at + size;
    note_taken(at, size);
    return true;
  }
  return false;
}

#else  // 32-bit

bool Realm::open() {
  constexpr size_t kTable = size_t{1} << (32 - kUnitShift);
  size_t size = align_up(kTable * sizeof(Span), kPageSize);
  uintptr_t table = platform::reserve(size, kPageSize);
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

size_t Realm::side_tables() const { return table_.committed() + piece_notes_bytes_; }

bool Realm::commit_tables_to(uintptr_t) { return true; }

// The notes of a piece, committed whole: a piece is small here.
bool Realm::make_notes(uintptr_t start, size_t size) {
  if constexpr (!kExactSizes) return true;
  size_t bytes = align_up(note_bytes(size), platform::kReserveGrain);
  uintptr_t notes = platform::reserve(bytes, kPageSize);
  if (notes == 0) return false;
  if (!platform::commit(notes, bytes)) {
    platform::release(notes, bytes);
    return false;
  }
  for (size_t at = 0; at < size; at += kPieceAlign) {
    piece_notes_[(start + at) / kPieceAlign].store(
        reinterpret_cast<uint8_t*>(notes + (at >> kNoteShift)));
  }
  piece_notes_bytes_ += bytes;
  return true;
}

void Realm::release_notes_of(uintptr_t start, uintptr_t end) {
  if constexpr (!kExactSizes) return;
  size_t bytes = align_up(note_bytes(end - start), platform::kReserveGrain);
  uintptr_t notes = address_of(piece_notes_[start / kPieceAlign].load());
  for (uintptr_t at = start; at < end; at += kPieceAlign)
    piece_notes_[at / kPieceAlign].store(nullptr);
  piece_notes_bytes_ -= bytes;
  platform::release(notes, bytes);
}

bool Realm::reserve_piece(size_t size) {
  uintptr_t start = platform::reserve(size, kExactSizes ? kPieceAlign : kUnitSize);
  if (start == 0) return false;
  if (!may_take(start, size) || !make_notes(start, size)) {
    platform::release(start, size);
    return false;
  }
  if (start != reserved_end_) frontier_ = start;
  reserved_end_ = start + size;
  note_taken(start, size);
  return true;
}

#endif

}  // namespace rh
