// The pages of a near region: committed from its start to its end, which moves; but for those within free pieces that
// went back to the OS.
#include "heap/region.h"

#include "arena/arena.h"

namespace rh {

namespace {

// A near region asks the OS for so much at least, if it has that, and for at most so much ahead.
constexpr size_t kLeastAhead = 64 * 1024, kMostAhead = kMiB;

}  // namespace

size_t Region::Pages::count() const { return start < end ? (end - start) / platform::page_size() : 0; }

// Those of a free piece that hold nothing of it.
Region::Pages Region::pages_within(Piece* piece) {
  return {align_up(address_of(piece) + sizeof(Piece), platform::page_size()),
          align_down(address_of(behind(piece)), platform::page_size())};
}

bool Region::commit_more(size_t bytes) {
  if (!g_arena.take_near(bytes)) return false;
  if (platform::commit(end_, bytes)) return true;
  g_arena.give_near(bytes);
  return false;
}

// So that a free piece of `units` grains lies at the end. What was the last header begins the new memory.
bool Region::grow(uint64_t units) {
  if (!may_grow()) return false;
  Piece* closing = at(last());
  Piece* free = is_sound(last()) ? sound_free(last() - closing->before) : nullptr;
  const uint64_t there = free != nullptr ? free->units : 0;
  if (there >= units) return false;
  const uint64_t missing = align_up(static_cast<uintptr_t>((units - there) * kBlockAlign), platform::page_size());
  const size_t room = limit_ - end_;
  if (missing > room) return false;
  size_t ahead = (end_ - base_) / 8;
  ahead = align_up(ahead < kLeastAhead ? kLeastAhead : ahead > kMostAhead ? kMostAhead : ahead, platform::page_size());
  size_t bytes = missing > ahead ? static_cast<size_t>(missing) : ahead < room ? ahead : room;
  if (!commit_more(bytes)) {
    if (bytes == missing) return false;
    bytes = static_cast<size_t>(missing);
    if (!commit_more(bytes)) return false;
  }
  const Grains added = static_cast<Grains>(bytes / kBlockAlign);
  write(at(last() + added), 1, added, kUsed);
  write(closing, added, closing->before, 0);
  closing->hollow = 0;
  end_ += bytes;
  return merge(closing) != nullptr;
}

// Its pages are there again. False when the OS, or a limit, refuses.
bool Region::fill(Piece* piece) {
  if (piece->hollow == 0) return true;
  const Pages pages = pages_within(piece);
  if (piece->hollow > pages.count()) return spoil(piece);
  const size_t bytes = piece->hollow * platform::page_size();
  if (!g_arena.take_near(bytes)) return false;
  if (!platform::commit(pages.start, pages.end - pages.start)) {
    g_arena.give_near(bytes);
    return false;
  }
  hollow_ -= piece->hollow;
  piece->hollow = 0;
  return true;
}

// Gives back the pages within a free piece. Gives the bytes. Not where nobody could read there then: headers of blocks
// that were freed are looked at when they are freed once more.
size_t Region::empty(Piece* piece) {
  if constexpr (platform::kChargesUntouched) return 0;
  const Pages pages = pages_within(piece);
  const size_t gone = piece->hollow * platform::page_size();
  if (pages.count() <= piece->hollow || !fill(piece)) return 0;
  if (platform::purge(pages.start, pages.end - pages.start) == platform::Purged::kept) return 0;
  piece->hollow = static_cast<uint32_t>(pages.count());
  hollow_ += pages.count();
  g_arena.give_near(pages.end - pages.start);
  return pages.end - pages.start - gone;
}

// The last piece, if it is free, becomes as short as one page allows.
size_t Region::shrink_end() {
  Piece* closing = at(last());
  Piece* piece = is_sound(last()) && closing->before != 0 ? sound_free(last() - closing->before) : nullptr;
  if (piece == nullptr) return 0;
  const size_t gone = piece->hollow * platform::page_size(), before = end_;
  const uintptr_t end = align_up(address_of(piece) + (kLeastPiece + 1) * kBlockAlign, platform::page_size());
  if (end >= end_ || !fill(piece) || !unlink(piece)) return 0;
  const Grains units = static_cast<Grains>((end - address_of(piece)) / kBlockAlign) - 1, whole = piece->units;
  end_ = end;
  write(at(last()), 1, units, kUsed);
  write(piece, units, piece->before, 0);
  if (platform::purge(end, before - end) == platform::Purged::kept) {
    end_ = before;
    write(at(last()), 1, whole, kUsed);
    write(piece, whole, piece->before, 0);
    insert(piece);
    return 0;
  }
  ++merges_;
  insert(piece);
  g_arena.give_near(before - end);
  return before - end - gone;
}

size_t Region::trim() {
  if (kind_ != Kind::reserved) return 0;
  LockGuard guard(lock_);
  if (!usable()) return 0;
  size_t bytes = shrink_end();
  for (Grains index = first_; usable() && index < last() && is_sound(index); index += at(index)->units)
    if (at(index)->state == 0) bytes += empty(at(index));
  return bytes;
}

void Region::give_up_charge() {
  if (kind_ == Kind::reserved) g_arena.give_near(end_ - base_ - hollow_ * platform::page_size());
}

}  // namespace rh
