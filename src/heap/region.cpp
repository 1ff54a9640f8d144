#include "heap/region.h"

#include <new>

#include "arena/arena.h"

namespace rh {

namespace {

// How many free pieces are looked at beside those that are known to be long enough.
constexpr unsigned kMostLooks = 16;

size_t grains_of(size_t bytes) { return divide_up(bytes, kBlockAlign); }

}  // namespace

// ---- where things lie ---------------------------------------------------------------------------

uintptr_t Region::place(uintptr_t base) { return align_up(base, kBlockAlign); }

// The first row has a column for each size up to kColumns grains, each further one is of a doubling.
unsigned Region::rows_for(size_t size) {
  const size_t grains = size / kBlockAlign;
  return grains < kColumns ? 1 : highest_bit(grains) - kColumnBits + 2;
}

size_t Region::lists_end(unsigned rows) { return align_up(sizeof(Region) + rows * sizeof(Row), kBlockAlign); }

Region::Column Region::column_of(Grains units) {
  if (units < kColumns) return {0, units};
  const unsigned doubling = highest_bit(units) - kColumnBits;
  return {doubling + 1, units >> doubling & (kColumns - 1)};
}

size_t Region::least_of(uintptr_t base, size_t size) {
  const size_t lost = place(base) - base;
  const size_t least = lost + lists_end(rows_for(size)) + (kLeastPiece + 1) * kBlockAlign;
  return least <= size ? least : 0;
}

Region* Region::lay(Kind kind, uintptr_t base, size_t size, size_t committed, uint64_t key) {
  Region* region = new (reinterpret_cast<void*>(place(base))) Region;
  region->kind_ = kind;
  region->base_ = base;
  region->limit_ = base + size;
  region->end_ = align_down(base + committed, kBlockAlign);
  region->key_ = key;
  region->row_count_ = rows_for(size);
  region->first_ = static_cast<Grains>(lists_end(region->row_count_) / kBlockAlign);
  region->start_over();
  return region;
}

// All of it is one free piece. What was a block's header is none under another key.
void Region::start_over() {
  key_ = mix(key_ + 1);
  __builtin_memset(static_cast<void*>(rows()), 0, row_count_ * sizeof(Row));
  filled_ = 0;
  in_use_ = blocks_ = 0;
  ++merges_;
  const Grains units = last() - first_;
  write(at(last()), 1, units, kUsed);
  write(at(first_), units, 0, 0);
  at(first_)->hollow = 0;
  insert(at(first_));
}

// ---- headers ------------------------------------------------------------------------------------

uint32_t Region::seal_of(const Piece* piece) const {
  const uint64_t extent = uint64_t{piece->units} << 32 | piece->before;
  const uint64_t rest = uint64_t{index_of(piece)} << 32 | piece->state;
  return static_cast<uint32_t>(mix(mix(key_ ^ extent) + rest) >> 16);
}

void Region::write(Piece* piece, Grains units, Grains before, uint32_t state) {
  piece->units = units;
  piece->before = before;
  piece->state = state;
  piece->seal = seal_of(piece);
}

bool Region::is_sound(Grains index) {
  return index >= first_ && index <= last() && at(index)->seal == seal_of(at(index));
}

Region::Piece* Region::sound_free(Grains index) {
  return is_sound(index) && at(index)->state == 0 && at(index)->units <= last() - index ? at(index) : nullptr;
}

// Gives false.
bool Region::spoil(const Piece* piece) {
  if (!is_damaged()) damage_ = address_of(piece) + kHeader;
  damaged_.store(true, std::memory_order_relaxed);
  return false;
}

uintptr_t Region::take_damage() {
  if (RH_LIKELY(!is_damaged())) return 0;
  LockGuard guard(lock_);
  const uintptr_t damage = damage_;
  damage_ = 0;
  return damage;
}

// ---- lists of free pieces -----------------------------------------------------------------------

void Region::insert(Piece* piece) {
  const Column of = column_of(piece->units);
  Row& row = rows()[of.row];
  const Grains index = index_of(piece), next = row.first[of.column];
  piece->next = next;
  piece->previous = 0;
  if (next != 0) at(next)->previous = index;
  row.first[of.column] = index;
  row.filled |= 1u << of.column;
  filled_ |= 1u << of.row;
}

// False when what the piece or its neighbours say of each other is not so: somebody wrote to free memory.
bool Region::unlink(Piece* piece) {
  const Grains index = index_of(piece);
  const Column of = column_of(piece->units);
  Row& row = rows()[of.row];
  Piece* next = piece->next != 0 ? sound_free(piece->next) : nullptr;
  Piece* previous = piece->previous != 0 ? sound_free(piece->previous) : nullptr;
  if (piece->next != 0 && (next == nullptr || next->previous != index)) return spoil(piece);
  if (piece->previous != 0 ? previous == nullptr || previous->next != index : row.first[of.column] != index)
    return spoil(piece);
  if (next != nullptr) next->previous = piece->previous;
  if (previous != nullptr) {
    previous->next = piece->next;
    return true;
  }
  row.first[of.column] = piece->next;
  if (piece->next != 0) return true;
  row.filled &= ~(1u << of.column);
  if (row.filled == 0) filled_ &= ~(1u << of.row);
  return true;
}

// The first of the first list all of whose pieces are that long.
Region::Piece* Region::first_from(uint64_t units) {
  if (units >= kColumns) units += (uint64_t{1} << (highest_bit(static_cast<size_t>(units)) - kColumnBits)) - 1;
  if (units > last()) return nullptr;
  Column of = column_of(static_cast<Grains>(units));
  uint32_t columns = of.row < row_count_ ? rows()[of.row].filled & (~0u << of.column) : 0;
  if (columns == 0) {
    const uint32_t rows_above = of.row + 1 < row_count_ ? filled_ & (~0u << (of.row + 1)) : 0;
    if (rows_above == 0) return nullptr;
    of.row = static_cast<unsigned>(__builtin_ctz(rows_above));
    columns = rows()[of.row].filled;
  }
  return at(rows()[of.row].first[__builtin_ctz(columns)]);
}

// How much in front of a block in this piece has to stay free. A single grain is no piece.
Region::Grains Region::gap_before(const Piece* piece, size_t alignment) const {
  const uintptr_t start = address_of(piece) + kHeader;
  const size_t gap = (align_up(start, alignment) - start) / kBlockAlign;
  return static_cast<Grains>(gap == 1 ? gap + alignment / kBlockAlign : gap);
}

// A piece that has room. Good fit rounds up, and passes over some that are long enough: where there is nothing longer,
// a few of these are looked at.
Region::Piece* Region::find(Grains units, size_t alignment) {
  const uint64_t slack = alignment > kBlockAlign ? alignment / kBlockAlign + 1 : 0;
  if (Piece* piece = first_from(units + slack)) return piece;
  Column of = column_of(units);
  unsigned looks = 0;
  for (; of.row < row_count_; ++of.row, of.column = 0) {
    for (; of.column < kColumns; ++of.column) {
      for (Grains index = rows()[of.row].first[of.column]; index != 0; index = at(index)->next) {
        Piece* piece = sound_free(index);
        if (piece == nullptr) {
          spoil(at(index));
          return nullptr;
        }
        if (uint64_t{gap_before(piece, alignment)} + units <= piece->units) return piece;
        if (++looks == kMostLooks) return nullptr;
      }
    }
  }
  return nullptr;
}

// ---- pieces -------------------------------------------------------------------------------------

// A free piece in no list takes in the free ones beside it, and joins its list.
Region::Piece* Region::merge(Piece* piece) {
  Piece* next = behind(piece);
  if (next->state == 0) {
    if (sound_free(index_of(next)) == nullptr || !unlink(next)) return nullptr;
    piece->hollow += next->hollow;
    write(piece, piece->units + next->units, piece->before, 0);
    ++merges_;
  }
  Piece* previous = piece->before != 0 ? sound_free(index_of(piece) - piece->before) : nullptr;
  if (previous != nullptr && previous->units == piece->before) {
    if (!unlink(previous)) return nullptr;
    previous->hollow += piece->hollow;
    write(previous, previous->units + piece->units, previous->before, 0);
    ++merges_;
    piece = previous;
  }
  if (!is_sound(index_of(behind(piece)))) {
    spoil(behind(piece));
    return nullptr;
  }
  write_before(behind(piece), piece->units);
  insert(piece);
  return piece;
}

// What is behind the first `units` of a piece in no list becomes free, if that is enough to be a piece.
void Region::cut(Piece* piece, Grains units) {
  const Grains rest = piece->units - units;
  if (rest < kLeastPiece) return write_before(behind(piece), piece->units);
  Piece* free = at(index_of(piece) + units);
  write(free, rest, units, 0);
  free->hollow = 0;
  write(piece, units, piece->before, piece->state);
  merge(free);
}

// Never 0, which stands behind many a text.
unsigned char Region::tail_of(const Piece* piece) const {
  return static_cast<unsigned char>(mix(key_ + index_of(piece)) % 255 + 1);
}

// Its end is marked, where that is looked at.
void Region::hand_out(Piece* piece, size_t size) {
  const size_t slack = payload(piece) - size;
  write(piece, piece->units, piece->before, static_cast<uint32_t>(slack << 1) | kUsed);
  if constexpr (kHardened)
    __builtin_memset(reinterpret_cast<unsigned char*>(piece) + kHeader + size, tail_of(piece), slack);
}

bool Region::is_intact(Piece* piece) {
  const Grains next = index_of(piece) + piece->units;
  if (!is_sound(next) || at(next)->before != piece->units) return false;
  if constexpr (kHardened) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(piece) + kHeader;
    for (size_t index = asked(piece), end = payload(piece); index < end; ++index)
      if (bytes[index] != tail_of(piece)) return false;
  }
  return true;
}

// From a free piece that has room.
void* Region::take(Piece* piece, Grains units, size_t alignment, size_t size) {
  const Grains gap = gap_before(piece, alignment), whole = piece->units;
  const bool is_whole = sound_free(index_of(piece)) != nullptr && is_sound(index_of(piece) + whole);
  if (!is_whole) {
    spoil(piece);
    return nullptr;
  }
  const Grains taken = whole - gap - units < kLeastPiece ? whole - gap : units;
  if (!account_.charge(size_t{taken} * kBlockAlign)) {
    account_.note_refused();
    return nullptr;
  }
  if (!fill(piece) || !unlink(piece)) {
    account_.discharge(size_t{taken} * kBlockAlign);
    return nullptr;
  }
  if (gap != 0) {
    Piece* front = piece;
    piece = at(index_of(front) + gap);
    write(piece, whole - gap, gap, 0);
    write(front, gap, front->before, 0);
    insert(front);
  }
  piece->state = kUsed;
  cut(piece, units);
  hand_out(piece, size);
  ++blocks_;
  in_use_ += usable_of(piece);
  return reinterpret_cast<unsigned char*>(piece) + kHeader;
}

// Of a piece with a block of so many bytes; no region has as many where there is no such piece.
size_t Region::grains_for(size_t size) {
  constexpr uint64_t kMost = (kMostBytes < SIZE_MAX ? kMostBytes : SIZE_MAX) - kHeader - kTail;
  return size <= kMost ? grains_of(kHeader + size + kTail) : SIZE_MAX;
}

void* Region::allocate(size_t alignment, size_t size) {
  const size_t grains = grains_for(size);
  LockGuard guard(lock_);
  if (!usable() || grains > (limit_ - base_) / kBlockAlign) return nullptr;
  const Grains units = grains < kLeastPiece ? kLeastPiece : static_cast<Grains>(grains);
  Piece* piece = find(units, alignment);
  if (piece == nullptr && !is_damaged()) {
    const uint64_t slack = alignment > kBlockAlign ? alignment / kBlockAlign + 1 : 0;
    if (grow(units + slack) || (slack != 0 && grow(units))) piece = find(units, alignment);
  }
  return piece != nullptr ? take(piece, units, alignment, size) : nullptr;
}

// ---- blocks -------------------------------------------------------------------------------------

Region::Block Region::seen(const void* block, Piece** piece) {
  const uintptr_t address = address_of(block);
  if (RH_UNLIKELY(!usable())) return {Seen::lost, 0, 0};
  const bool inside = address >= address_of(at(first_)) + kHeader && address < end_ && address % kBlockAlign == 0;
  if (!inside) return {Seen::nothing, 0, 0};
  Piece* found = reinterpret_cast<Piece*>(address - kHeader);
  if (!is_sound(index_of(found))) return {Seen::nothing, 0, 0};
  if ((found->state & kUsed) == 0) return {Seen::free, 0, 0};
  *piece = found;
  return {is_intact(found) ? Seen::block : Seen::overrun, asked(found), usable_of(found)};
}

Region::Block Region::look(const void* block) {
  LockGuard guard(lock_);
  Piece* piece = nullptr;
  return seen(block, &piece);
}

Region::Block Region::free(void* block, size_t asked) {
  LockGuard guard(lock_);
  Piece* piece = nullptr;
  const Block what = seen(block, &piece);
  if (what.seen != Seen::block || (asked != kUnknown && asked != what.asked)) return what;
  account_.discharge(size_t{piece->units} * kBlockAlign);
  --blocks_;
  in_use_ -= what.usable;
  write(piece, piece->units, piece->before, 0);
  piece->hollow = 0;
  merge(piece);
  return what;
}

// The piece, in use, takes from the free one behind it. False when that has not so much.
bool Region::lengthen(Piece* piece, Grains units) {
  Piece* next = sound_free(index_of(behind(piece)));
  if (next == nullptr && index_of(behind(piece)) != last()) return false;
  const uint64_t there = uint64_t{piece->units} + (next != nullptr ? next->units : 0);
  if (there < units) {
    const bool at_end = next == nullptr || index_of(behind(next)) == last();
    if (!at_end || !may_grow() || !grow(units - piece->units)) return false;
    next = sound_free(index_of(behind(piece)));
    if (next == nullptr || uint64_t{piece->units} + next->units < units) return false;
  }
  if (!is_sound(index_of(behind(next)))) return spoil(behind(next));
  if (!fill(next) || !unlink(next)) return false;
  write(piece, piece->units + next->units, piece->before, piece->state);
  ++merges_;
  cut(piece, units);
  return true;
}

bool Region::fit(Piece* piece, Grains units) {
  const Grains before = piece->units;
  if (units <= before) {
    if (before - units >= kLeastPiece) cut(piece, units);
    account_.discharge(size_t{before - piece->units} * kBlockAlign);
    return true;
  }
  if (!account_.admits(size_t{units - before} * kBlockAlign) || !lengthen(piece, units)) return false;
  account_.charge_anyway(size_t{piece->units - before} * kBlockAlign);
  return true;
}

bool Region::resize(void* block, size_t size) {
  const size_t grains = grains_for(size);
  LockGuard guard(lock_);
  Piece* piece = nullptr;
  if (grains > (limit_ - base_) / kBlockAlign || seen(block, &piece).seen != Seen::block) return false;
  const size_t before = usable_of(piece);
  if (!fit(piece, grains < kLeastPiece ? kLeastPiece : static_cast<Grains>(grains))) return false;
  hand_out(piece, size);
  in_use_ = in_use_ - before + usable_of(piece);
  return true;
}

// What was written to free memory is of no account then. Pages that the OS refuses stay beyond the end.
void Region::reset() {
  LockGuard guard(lock_);
  if (inconsistent()) return;
  if (hollow_ != 0) {
    const size_t least = align_up(least_of(base_, size()), platform::page_size()), there = end_ - base_;
    const bool whole =
        g_arena.take_near(hollow_ * platform::page_size()) && platform::commit(base_ + least, there - least);
    if (!whole) {
      g_arena.give_near(there - least - hollow_ * platform::page_size());
      end_ = base_ + least;
    }
    hollow_ = 0;
  }
  account_.discharge(account_.held());
  damaged_.store(false, std::memory_order_relaxed);
  damage_ = 0;
  start_over();
}

// ---- looking around -----------------------------------------------------------------------------

void Region::walk_on(Walk* walk) {
  LockGuard guard(lock_);
  walk->count = 0;
  if (!usable()) return;
  Grains index = walk->piece != 0 && walk->merges == merges_ ? walk->piece : first_;
  for (; index < last() && walk->count < Walk::kAtOnce; index += at(index)->units) {
    if (!is_sound(index)) {
      spoil(at(index));
      break;
    }
    const uintptr_t start = address_of(at(index)) + kHeader;
    if (at(index)->state == 0 || start < walk->from) continue;
    walk->found[walk->count++] = {reinterpret_cast<void*>(start), usable_of(at(index))};
    walk->from = start + 1;
  }
  walk->piece = index;
  walk->merges = merges_;
}

Region::Figures Region::figures() {
  LockGuard guard(lock_);
  const size_t there = kind_ == Kind::reserved ? end_ - base_ - hollow_ * platform::page_size() : 0;
  return {in_use_, blocks_, there};
}

bool Region::is_valid() {
  LockGuard guard(lock_);
  size_t free_pieces = 0, listed = 0;
  bool was_free = false;
  Grains before = 0, index = first_;
  for (; index < last(); before = at(index)->units, index += before) {
    Piece* piece = at(index);
    const bool fits = is_sound(index) && piece->before == before && piece->units >= kLeastPiece;
    if (!fits || (was_free && piece->state == 0)) return false;
    was_free = piece->state == 0;
    free_pieces += was_free;
  }
  if (index != last() || !is_sound(index) || at(index)->before != before) return false;
  for (unsigned row = 0; row < row_count_; ++row) {
    for (unsigned column = 0; column < kColumns; ++column) {
      for (index = rows()[row].first[column]; index != 0; index = at(index)->next, ++listed) {
        const Column of = column_of(at(index)->units);
        if (sound_free(index) == nullptr || of.row != row || of.column != column) return false;
      }
      if ((rows()[row].first[column] != 0) != ((rows()[row].filled >> column & 1) != 0)) return false;
    }
    if ((rows()[row].filled != 0) != ((filled_ >> row & 1) != 0)) return false;
  }
  return listed == free_pieces;
}

// ---- after a change that was cut short ----------------------------------------------------------

// The pieces are right from the first on, each to its end: headers are written before anything leads to them.
void Region::recover() {
  __builtin_memset(static_cast<void*>(rows()), 0, row_count_ * sizeof(Row));
  filled_ = 0;
  in_use_ = blocks_ = hollow_ = 0;
  size_t held = 0;
  Grains before = 0, index = first_;
  ++merges_;
  for (; index < last(); before = at(index)->units, index += before) {
    Piece* piece = at(index);
    if (!is_sound(index) || piece->units < kLeastPiece || piece->units > last() - index) {
      damaged_.store(true, std::memory_order_relaxed);  // nobody is told: it was nobody's fault
      return;
    }
    write_before(piece, before);
    if (piece->state == 0) {
      hollow_ += piece->hollow;
      insert(piece);
      continue;
    }
    ++blocks_;
    in_use_ += usable_of(piece);
    held += size_t{piece->units} * kBlockAlign;
  }
  write(at(last()), 1, before, kUsed);
  account_.discharge(account_.held());
  account_.charge_anyway(held);
}

}  // namespace rh
