#include "code_memory.h"

#include <windows.h>

#include "emit.h"

namespace rh::redirect {

namespace {

constexpr size_t kSize = 16384;          // some 100 patches
constexpr uintptr_t kGranule = 65536;    // what VirtualAlloc rounds addresses to
constexpr uintptr_t kLowest = kGranule;  // below nothing can be had

uint8_t* allocate_at(uintptr_t address) {
  return static_cast<uint8_t*>(
      VirtualAlloc(reinterpret_cast<void*>(address), kSize, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

uintptr_t round_up(uintptr_t address) { return (address + kGranule - 1) & ~(kGranule - 1); }
uintptr_t round_down(uintptr_t address) { return address & ~(kGranule - 1); }

// How many bytes from `address` on are free; when none are, what is there instead.
size_t free_at(uintptr_t address, Range* occupied) {
  MEMORY_BASIC_INFORMATION region;
  if (VirtualQuery(reinterpret_cast<void*>(address), &region, sizeof(region)) == 0) {
    *occupied = {0, UINTPTR_MAX};  // outside the address space
    return 0;
  }
  if (region.State == MEM_FREE) return region.RegionSize;
  *occupied = {reinterpret_cast<uintptr_t>(region.AllocationBase),
               reinterpret_cast<uintptr_t>(region.BaseAddress) + region.RegionSize};
  return 0;
}

uint8_t* allocate_above(uintptr_t from, uintptr_t highest) {
  for (uintptr_t place = round_up(from); place <= highest && place >= from;) {
    Range occupied;
    if (free_at(place, &occupied) >= kSize) {
      if (uint8_t* memory = allocate_at(place)) return memory;
    }
    place = round_up(occupied.end > place ? occupied.end : place + kGranule);
  }
  return nullptr;
}

uint8_t* allocate_below(uintptr_t from, uintptr_t lowest) {
  for (uintptr_t place = round_down(from) - kGranule; place >= lowest && place < from;) {
    Range occupied;
    if (free_at(place, &occupied) >= kSize) {
      if (uint8_t* memory = allocate_at(place)) return memory;
    }
    uintptr_t begin = occupied.end != 0 && occupied.begin < place ? round_down(occupied.begin) : place;
    place = begin - kGranule;
  }
  return nullptr;
}

#if defined(__x86_64__) && !defined(__arm64ec__)
constexpr bool kHasUnwindTables = true;

void register_unwinds(void* table, size_t count, const uint8_t* base) {
  RtlAddFunctionTable(static_cast<RUNTIME_FUNCTION*>(table), static_cast<DWORD>(count),
                      reinterpret_cast<uintptr_t>(base));
}

void forget_unwinds(void* table) { RtlDeleteFunctionTable(static_cast<RUNTIME_FUNCTION*>(table)); }
#else
constexpr bool kHasUnwindTables = false;

void register_unwinds(void*, size_t, const uint8_t*) {}

void forget_unwinds(void*) {}
#endif

}  // namespace

bool CodeMemory::open_near(Range image) {
  used_ = 0;
  unwind_count_ = 0;
  sealed_ = false;
  uintptr_t highest = image.begin + kReach - kGranule;
  uintptr_t lowest = image.end > kReach + kLowest ? image.end - kReach : kLowest;
  if (highest < image.begin) highest = UINTPTR_MAX - kGranule;
  begin_ = allocate_above(image.end, highest);
  if (begin_ == nullptr) begin_ = allocate_below(image.begin, lowest);
  if (kHasUnwindTables) take(kMostUnwinds * sizeof(Unwind));
  return begin_ != nullptr;
}

uint8_t* CodeMemory::take(size_t size) {
  constexpr size_t kAlignment = 16;
  size = (size + kAlignment - 1) & ~(kAlignment - 1);
  if (begin_ == nullptr || sealed_ || size > kSize - used_) return nullptr;
  uint8_t* piece = begin_ + used_;
  used_ += size;
  return piece;
}

CodeMemory::Unwind* CodeMemory::unwinds() const { return reinterpret_cast<Unwind*>(begin_); }

void CodeMemory::add_unwind(const uint8_t* code, size_t size, const uint8_t* data) {
  if (!kHasUnwindTables || unwind_count_ == kMostUnwinds) return;
  uint32_t begin = static_cast<uint32_t>(code - begin_);
  unwinds()[unwind_count_++] = {begin, begin + static_cast<uint32_t>(size), static_cast<uint32_t>(data - begin_)};
}

bool CodeMemory::seal() {
  constexpr DWORD kNoNewTargets = 0x40000000;  // PAGE_TARGETS_NO_UPDATE: not all headers have it
  DWORD before = 0;
  // What has never been executable is no target, and stays none. Windows 8 and before know nothing of that.
  sealed_ = VirtualProtect(begin_, kSize, PAGE_EXECUTE_READ | kNoNewTargets, &before) != 0 ||
            VirtualProtect(begin_, kSize, PAGE_EXECUTE_READ, &before) != 0;
  if (!sealed_) return false;
  FlushInstructionCache(GetCurrentProcess(), begin_, kSize);
  if (unwind_count_ != 0) register_unwinds(unwinds(), unwind_count_, begin_);
  return true;
}

void CodeMemory::release() {
  if (begin_ == nullptr) return;
  if (sealed_ && unwind_count_ != 0) forget_unwinds(unwinds());
  VirtualFree(begin_, 0, MEM_RELEASE);
  begin_ = nullptr;
}

}  // namespace rh::redirect
