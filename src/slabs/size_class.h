// Size classes: every 16 bytes up to 128, then eight to a doubling, so that rounding up costs an eighth at most,
// sixteen from one kibibyte to two, and four around a page; and how long slabs of each class are.
#pragma once

#include "base/bits.h"
#include "base/config.h"
#include "base/units.h"

namespace rh {

using SizeClass = uint8_t;

namespace size_class {

inline constexpr size_t kLinear = 8;  // classes of 16, 32 … 128
inline constexpr size_t kPerDoubling = 8;
inline constexpr size_t kLinearMax = kLinear * kBlockAlign;
inline constexpr unsigned kLinearBits = highest_bit(kLinearMax);
inline constexpr unsigned kFineBits = 10;  // the doubling that has twice as many: a kibibyte and a header is common
inline constexpr size_t kFine = kLinear + kPerDoubling * (kFineBits - kLinearBits), kPerFine = 2 * kPerDoubling;
// Around a page. Blocks that lie a page apart all begin in one set of a processor's cache, which holds few lines, and
// the beginning of such blocks is what many programs look at most: a line less or more lies between them.
inline constexpr size_t kPage = 4096, kLine = 64;
inline constexpr size_t kHeadedPage = 4416;  // a page of SQLite's cache takes 4,368 bytes
inline constexpr size_t kAroundPage[] = {kPage - kLine, kPage, kPage + kLine, kHeadedPage};
inline constexpr size_t kMore = sizeof(kAroundPage) / sizeof(*kAroundPage) - 1;
inline constexpr size_t kAround = kFine + kPerFine + kPerDoubling * (highest_bit(kPage) - kFineBits - 1) - 1;
inline constexpr size_t kCount = kLinear + kPerDoubling * (highest_bit(kMaxSmall) - kLinearBits) + kPerDoubling + kMore;

constexpr size_t size_of(size_t index) {
  constexpr size_t kFirst = size_t{1} << kFineBits;
  if (index >= kAround) {
    if (index <= kAround + kMore) return kAroundPage[index - kAround];
    index -= kMore;
  }
  if (index < kLinear) return (index + 1) * kBlockAlign;
  if (index >= kFine && index < kFine + kPerFine) return kFirst + (index - kFine + 1) * (kFirst / kPerFine);
  if (index >= kFine) index -= kPerDoubling;
  size_t doubling = (index - kLinear) / kPerDoubling;
  size_t step = (index - kLinear) % kPerDoubling + 1;
  return (kLinearMax << doubling) + step * ((kLinearMax / kPerDoubling) << doubling);
}

// The smallest class of `size`, from 1 to kMaxSmall.
constexpr SizeClass computed(size_t size) {
  size_t last = size - 1;
  if (last < kLinearMax) return static_cast<SizeClass>(last / kBlockAlign);
  unsigned top = highest_bit(last);
  if (top == kFineBits) return static_cast<SizeClass>(kFine + ((last >> (kFineBits - 4)) & (kPerFine - 1)));
  const size_t first = kLinear + (top > kFineBits ? kPerDoubling : 0);
  const size_t index = first + (top - kLinearBits) * kPerDoubling + ((last >> (top - 3)) & (kPerDoubling - 1));
  if (index < kAround) return static_cast<SizeClass>(index);
  for (size_t more = 0; more <= kMore; ++more)
    if (size <= kAroundPage[more]) return static_cast<SizeClass>(kAround + more);
  return static_cast<SizeClass>(index + kMore);
}

// Who asked for no page's alignment has a line between his pages.
constexpr size_t spaced(size_t size) { return size > kPage - kLine && size <= kPage ? kPage + kLine : size; }

// A heap's first slab of a class holds a block, or what else there is room for, and each that it needs while it fills
// them is so much longer than the one before: few blocks of most classes are in use at a time, and a long slab stays
// for any of its blocks.
constexpr Units shortest_slab(size_t index) { return Units::holding(size_of(index) + kSlabGuard); }

// The longest slab: the shortest that holds enough blocks and wastes at most a thirty-second of itself at the end; or
// an eighth where the end is a guard, and what is wasted before it never touched.
constexpr Units slab_units_of(size_t index) {
  size_t size = size_of(index);
  size_t enough = size <= 8 * 1024 ? 8 : 4;
  size_t most = kSlabGuard == 0 ? 32 : 8;
  Units units{1};
  auto room = [&] { return units.bytes() - kSlabGuard; };
  while (room() / size < enough || room() % size > units.bytes() / most) units += Units{1};
  return units;
}

// Each class has two bins, numbered like the classes: one as always, and one for allocations that were passed while
// they are watched (heap/watch.h). Tables of what a class's blocks are have entries for both.
inline constexpr size_t kBins = 2 * kCount;
constexpr SizeClass passed_bin(SizeClass size_class) { return static_cast<SizeClass>(kCount + size_class); }
constexpr SizeClass class_of_bin(size_t bin) { return static_cast<SizeClass>(bin < kCount ? bin : bin - kCount); }

struct Properties {
  uint16_t size;
  uint16_t capacity;  // blocks in the longest slab
  uint8_t units;      // in the longest slab
  uint8_t carve;      // blocks of about a page: so many are carved at a time, or twice that
  uint16_t worth;     // free blocks that make a full slab worth using again
};

// Longer blocks are not freed into a bin, from where nobody can take them while their thread sleeps.
inline constexpr size_t kMostBinned = kPage + kLine;

constexpr Properties properties_of(size_t index) {
  size_t size = size_of(index);
  Units units = slab_units_of(index);
  size_t capacity = (units.bytes() - kSlabGuard) / size;
  size_t carve = size < 4096 ? 4096 / size : 1;
  size_t worth = capacity / 16;
  return {static_cast<uint16_t>(size), static_cast<uint16_t>(capacity), static_cast<uint8_t>(units.count),
          static_cast<uint8_t>(carve < 255 ? carve : 255), static_cast<uint16_t>(worth == 0 ? 1 : worth)};
}

template <typename Entry, size_t kEntries> struct Table {
  Entry entries[kEntries];
  constexpr const Entry& operator[](size_t index) const { return entries[index]; }
};

inline constexpr auto kProperties = [] {
  Table<Properties, kBins> table{};
  for (size_t bin = 0; bin < kBins; ++bin) table.entries[bin] = properties_of(class_of_bin(bin));
  return table;
}();

// The longest slab of all.
inline constexpr Units kMostUnits = [] {
  Units most{};
  for (size_t index = 0; index < kCount; ++index)
    if (slab_units_of(index) > most) most = slab_units_of(index);
  return most;
}();

// The same above kTableMax, where all classes are of multiples of 64 bytes.
inline constexpr size_t kMediumStep = 64;
inline constexpr auto kMediumTable = [] {
  Table<SizeClass, kMaxSmall / kMediumStep> table{};
  for (size_t step = 0; step < kMaxSmall / kMediumStep; ++step)
    table.entries[step] = computed(spaced((step + 1) * kMediumStep));
  return table;
}();
constexpr SizeClass of_medium(size_t size) { return kMediumTable[(size - 1) / kMediumStep]; }

// The same of sizes from 0 on; size 0 has the smallest class.
constexpr SizeClass of(size_t size) {
  if (size > kTableMax) return of_medium(size);
  return size == 0 ? SizeClass{0} : computed(size);
}

// The same by size, up to kTableMax. One byte per size, not per step of 16: this saves two instructions in malloc, and
// a program touches only the lines of the sizes it uses. malloc reads the copy in heap/types.h.
inline constexpr auto kTable = [] {
  Table<SizeClass, kTableMax + 1> table{};
  for (size_t size = 0; size <= kTableMax; ++size) table.entries[size] = of(size);
  return table;
}();

// The smallest class whose blocks all lie at multiples of `alignment` (at most a unit's size) and hold `size`; kCount
// when there is none. Slabs start at multiples of a unit, so the block size must be a multiple.
constexpr size_t aligned(size_t size, size_t alignment) {
  if (alignment <= kBlockAlign) return size <= kMaxSmall ? of(size) : kCount;
  size_t rounded = align_up(size == 0 ? 1 : size, alignment);
  if (rounded > kMaxSmall) return kCount;
  size_t index = computed(rounded);
  while (size_of(index) % alignment != 0) ++index;
  return index;
}

// The class that serves another's requests while that has no slab of its own (heap/lending.h): the power of two above,
// and at least a cache line. Where blocks are of a page or so, each touches pages of its own whoever serves it.
inline constexpr SizeClass kLeastLender = computed(64);
inline constexpr SizeClass kMostLender = computed(2048);

constexpr SizeClass lender_of(SizeClass size_class) {
  if (size_class <= kLeastLender) return kLeastLender;
  if (size_class > kMostLender) return size_class;
  return static_cast<SizeClass>(size_class | ((size_class < kFine ? kPerDoubling : kPerFine) - 1));
}

// Locates an offset from a slab's start: in which block it lies, and whether that block starts there. By multiplication
// with the reciprocal in 32 fractional bits, which is exact for numbers of 16 bits (D. Lemire, O. Kaser, N. Kurz:
// Faster remainder by direct computation, 2019).
struct Position {
  uint32_t index;
  bool is_start;
};

inline constexpr unsigned kPositionBits = 16;  // of an offset in multiples of kBlockAlign

inline constexpr auto kReciprocals = [] {
  Table<uint64_t, kBins> table{};
  for (size_t bin = 0; bin < kBins; ++bin)
    table.entries[bin] = UINT32_MAX / (size_of(class_of_bin(bin)) / kBlockAlign) + uint64_t{1};
  return table;
}();

constexpr Position position(SizeClass bin, size_t offset) {
  uint64_t reciprocal = kReciprocals[bin];
  uint64_t product = offset / kBlockAlign * reciprocal;
  bool is_start = offset % kBlockAlign == 0 && static_cast<uint32_t>(product) < reciprocal;
  return {static_cast<uint32_t>(product >> 32), is_start};
}

// An offset below a unit's size is a multiple of a block's size where its product with this, modulo 2^32, is less than
// this: the same in fewer instructions.
inline constexpr auto kPortions = [] {
  Table<uint32_t, kCount> table{};
  for (size_t index = 0; index < kCount; ++index)
    table.entries[index] = static_cast<uint32_t>(UINT32_MAX / size_of(index) + 1);
  return table;
}();

// Up to kTableMax every class of a multiple of an alignment has blocks of such a multiple.
static_assert([] {
  for (size_t alignment = kBlockAlign; alignment <= kTableMax; alignment *= 2)
    for (size_t size = alignment; size <= kTableMax; size += alignment)
      if (size_of(of(size)) % alignment != 0) return false;
  return true;
}());
static_assert(kMostUnits.bytes() / kBlockAlign <= size_t{1} << kPositionBits);
static_assert(kBins <= 0xff);
static_assert(size_of(kCount - 1) == kMaxSmall);
static_assert([] {
  for (size_t index = 0; index < kCount; ++index) {
    size_t size = size_of(index);
    size_t below = index == 0 ? 0 : size_of(index - 1);
    if (size % kBlockAlign != 0 || computed(size) != index || computed(below + 1) != index) return false;
    if (size > kLinearMax && (size - below) * kPerDoubling > size) return false;
    if (size > kTableMax && (size % kMediumStep != 0 || of_medium(below + 1) != computed(spaced(size)))) return false;
    size_t lender = size_of(lender_of(static_cast<SizeClass>(index)));
    if (lender < size || (lender != size && !is_power_of_two(lender))) return false;
    if (slab_units_of(index).count > 0xff || properties_of(index).capacity < 4) return false;
  }
  return true;
}());

}  // namespace size_class
}  // namespace rh
