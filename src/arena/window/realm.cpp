// The realm where there is address space for one window.
#include "arena/realm.h"

#include "arena/growth.h"
#include "arena/window/place.h"

namespace rh {

using platform::Reserve;

size_t Realm::side_tables() const { return table_bytes(committed_) + note_bytes(committed_); }

bool Realm::open() {
  if (opened_) return true;
  bool placed = wanted_.place != Window::Place::anywhere && open_in_place();
  if (!placed) wanted_.place = Window::Place::anywhere;
  opened_ = placed || open_anywhere();
  if (opened_ && wanted_.size > window_size()) wanted_.size = window_size();
  return opened_;
}

bool Realm::open_anywhere() {
  constexpr uint64_t kWhole = uint64_t{64} << 30;
  if (platform::places_freely() && open_sparse()) return true;
  uint64_t size = wanted_.size != 0 && wanted_.size < kWhole ? wanted_.size : kWhole;
  for (; size >= 16 * kMiB; size /= 2)
    if (open_whole(align_down(size, commit_grain()))) return true;
  return false;
}

// A window at a random place, nothing of it reserved yet. It is longer than any heap: others may take what lies before
// it. How much address space there is is not asked: where it is too short for a layout no place of that can be had.
bool Realm::open_sparse() {
  constexpr int kAttempts = 4;
  for (unsigned bits : kAddressBits) {
    const Layout layout{bits};
    uint64_t random = platform::random_seed();
    for (int attempt = 0; attempt < kAttempts; ++attempt, random = mix(random))
      if (open_sparse_at(layout, layout.place(random))) return true;
  }
  return false;
}

bool Realm::open_sparse_at(const Layout& layout, uintptr_t table) {
  uintptr_t notes = table + layout.table_room;
  base_.store(notes + layout.notes_room);
  set_tables(table, table, notes, notes);
  frontier_ = reserved_end_ = base();
  window_end_ = base() + kStride + kFirstPiece;  // rather another place than many steps
  Growth growth = begin();
  if (!reserve_more(kUnitSize, &growth)) return false;
  Units none;
  enter(growth, &none);
  uint64_t size = align_up(wanted_.size, piece_grain());
  window_end_ = base() + (size != 0 && size < layout.window ? size : layout.window);
  return true;
}

// A window reserved in one piece where the OS likes it.
bool Realm::open_whole(uintptr_t size) {
  uintptr_t base = platform::reserve(size, kUnitSize);
  if (base == 0) return false;
  if (open_at(base, size)) return true;
  platform::release(base, size);
  return false;
}

// The window the user asked for: the whole of it is taken at once, so that nobody else can settle in it.
bool Realm::open_in_place() {
  Places places = places_of(wanted_);
  for (uintptr_t base = places.first; base <= places.last; base += kPlaceStep) {
    if (platform::reserve_at(base, places.size) != Reserve::done) continue;
    if (open_at(base, places.size)) return true;
    platform::release(base, places.size);
  }
  return false;
}

// Takes over a window already reserved.
bool Realm::open_at(uintptr_t base, uintptr_t size) {
  // One reservation for both: there is nothing to undo between them.
  size_t both = table_bytes(size) + note_bytes(size);
  uintptr_t table = platform::reserve(both, platform::kPageSize);
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

void Realm::set_tables(uintptr_t table, uintptr_t table_end, uintptr_t notes, uintptr_t notes_end) {
  spans_.store(reinterpret_cast<Span*>(table));
  table_.open(table, table_end);
  sizes_.open(base(), notes, notes_end);
}

bool Realm::reserve_tables_to(uintptr_t end) {
  size_t notes_before = sizes_.table().reserved();
  if (!sizes_.table().reserve_to(note_bytes(end - base()))) return false;
  if (table_.reserve_to(table_bytes(end - base()))) return true;
  sizes_.table().unreserve(notes_before);
  return false;
}

bool Realm::commit_tables_to(uintptr_t end) {
  return table_.commit_to(table_bytes(end - base())) && sizes_.table().commit_to(note_bytes(end - base()));
}

// The last page of descriptors holds more than there are units.
void Realm::renew_tables() {
  size_t used = span_.load(), descriptors = table_bytes(used);
  __builtin_memset(static_cast<void*>(spans() + count()), 0, descriptors - count() * sizeof(Span));
  // Without fresh tables there is no fresh memory either.
  if (!table_.renew(descriptors) || !sizes_.table().renew(note_bytes(used))) window_end_ = frontier_ = reserved_end_;
}

// Appends to the window. What someone else has settled on is stepped over, in steps that grow with it: its descriptors
// can be read, and say nothing.
bool Realm::reserve_piece(size_t size, Growth* growth) {
  if (whole_) return false;
  uintptr_t step = kStride;
  for (uintptr_t at = growth->end; at + size <= window_end_; at += step) {
    step = align_up((at - growth->end) / 8, kStride);
    if (step == 0) step = kStride;
    if (!may_take(at, size)) return false;
    Reserve result = platform::reserve_at(at, size);
    if (result == Reserve::refused) return false;
    if (result == Reserve::occupied) continue;
    if (!reserve_tables_to(at + size)) {
      platform::release(at, size);
      return false;
    }
    if (at != growth->end) growth->start = at;
    growth->end = at + size;
    growth->piece = {at, at + size};
    return true;
  }
  return false;
}

}  // namespace rh
