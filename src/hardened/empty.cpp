#include "hardened/empty.h"

#include <atomic>

#include "base/bits.h"
#include "base/compiler.h"
#include "base/config.h"
#include "heap/heap.h"
#include "heap/tags.h"

namespace rh::hardened::empty {

namespace {

// A large block of ours: first the bits, a word of them at a time, then a guard, then the places, which begin at a
// multiple of any alignment that a block of no bytes can have here. It is never freed.
using Bits = uintptr_t;
constexpr size_t kBits = 8 * sizeof(Bits);
constexpr size_t kPlaces = size_t{1} << (k64Bit ? 16 : 13);
constexpr size_t kWords = kPlaces / kBits;
constexpr size_t kRange = kPlaces * kBlockAlign;
constexpr size_t kRangeStart = platform::kMostPageSize > kUnitSize ? platform::kMostPageSize : kUnitSize;
static_assert(kPlaces / 8 < kRangeStart);

constinit std::atomic<uintptr_t> g_table{0};
constinit std::atomic<size_t> g_hint{0};  // the word to begin with

std::atomic<Bits>& word(uintptr_t table, size_t index) { return reinterpret_cast<std::atomic<Bits>*>(table)[index]; }

RH_NOINLINE uintptr_t open() {
  tags::push(own_heap(), tags::kUntagged);  // it is the library's own
  void* block = rh::allocate_in(nullptr, kRangeStart, kRangeStart + kRange, false);
  tags::pop();
  uintptr_t table = address_of(block), other = 0;
  if (table == 0) return 0;
  size_t bits = align_up(kPlaces / 8, platform::page_size());
  __builtin_memset(block, 0, bits);  // not up to its end, where a guard may be
  bool guarded = platform::guard(table + bits, kRangeStart + kRange - bits, platform::GuardPrice::any);
  if (guarded && g_table.compare_exchange_strong(other, table)) return table;
  if (platform::unguard(table + bits, kRangeStart + kRange - bits)) rh::deallocate(block);
  return other;
}

// The bit of a place, if it is one.
bool find(const void* pointer, std::atomic<Bits>** of, Bits* bit) {
  if (!holds(pointer) || address_of(pointer) % kBlockAlign != 0) return false;
  uintptr_t table = g_table.load(std::memory_order_acquire);
  size_t place = (address_of(pointer) - table - kRangeStart) / kBlockAlign;
  *of = &word(table, place / kBits);
  *bit = Bits{1} << place % kBits;
  return true;
}

// The places of a word that are multiples of `step`.
Bits places(size_t index, size_t step) {
  if (step >= kBits) return index % (step / kBits) == 0 ? 1 : 0;
  Bits all = 0;
  for (size_t place = 0; place < kBits; place += step) all |= Bits{1} << place;
  return all;
}

// Takes one of the places of a word; null when all are taken.
void* take(uintptr_t table, size_t index, size_t step) {
  std::atomic<Bits>& taken = word(table, index);
  for (Bits free = places(index, step) & ~taken.load(std::memory_order_relaxed); free != 0; free &= free - 1) {
    Bits bit = free & -free;
    if ((taken.fetch_or(bit) & bit) != 0) continue;
    size_t place = index * kBits + static_cast<size_t>(std::countr_zero(bit));
    return reinterpret_cast<void*>(table + kRangeStart + place * kBlockAlign);
  }
  return nullptr;
}

}  // namespace

void* allocate(size_t alignment) {
  uintptr_t table = g_table.load(std::memory_order_acquire);
  if (table == 0) table = open();
  if (table == 0 || alignment > kUnitSize) return nullptr;
  size_t first = g_hint.load(std::memory_order_relaxed);
  for (size_t count = 0; count < kWords; ++count) {
    size_t index = (first + count) % kWords;
    void* block = take(table, index, alignment / kBlockAlign);
    if (block == nullptr) continue;
    g_hint.store(index, std::memory_order_relaxed);
    return block;
  }
  return nullptr;
}

bool holds(const void* pointer) {
  uintptr_t table = g_table.load(std::memory_order_acquire);
  return table != 0 && address_of(pointer) - table - kRangeStart < kRange;
}

bool is_live(const void* pointer) {
  std::atomic<Bits>* taken = nullptr;
  Bits bit = 0;
  return find(pointer, &taken, &bit) && (taken->load() & bit) != 0;
}

bool free(const void* pointer) {
  std::atomic<Bits>* taken = nullptr;
  Bits bit = 0;
  return find(pointer, &taken, &bit) && (taken->fetch_and(~bit) & bit) != 0;
}

}  // namespace rh::hardened::empty
