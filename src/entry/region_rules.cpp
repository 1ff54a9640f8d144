// The C rules for blocks of regions.
#include "entry/rules.h"

#include "hardened/misuse.h"
#include "heap/idle.h"
#include "platform/report.h"

namespace rh::rules {

namespace {

using Seen = Region::Seen;

// Returns in a hardened build that goes on.
RH_COLD void tell(const Text& message, const void* block, size_t size = 0) {
  const Misuse misuse{address_of(block), size};
  if constexpr (kHardened)
    if (hardened::g_goes_on.load(std::memory_order_relaxed)) return tell_misuse(message, misuse);
  fatal(message, misuse);
}

RH_COLD void tell_invalid(const void* pointer) {
  Text message;
  message << "free of invalid pointer ";
  tell(message.hex(address_of(pointer)) << ": not the start of a live block", nullptr);
}

RH_COLD void tell_twice(const void* block) {
  Text message;
  message << "free of a block that is free already: ";
  tell(message.hex(address_of(block)), block);
}

RH_COLD void tell_overrun(const void* block, size_t size, const char* seen) {
  Text message;
  message << "the block ";
  message.hex(address_of(block)) << " of ";
  message.decimal(size) << " bytes was written to behind its end, seen at ";
  tell(message << seen, block, size);
}

RH_COLD void tell_size(const void* block, size_t size, size_t freed_as) {
  Text message;
  message << "the block ";
  message.hex(address_of(block)) << " of ";
  message.decimal(size) << " bytes was freed as one of ";
  tell(message.decimal(freed_as) << " bytes", block, size);
}

RH_COLD void tell_damage(uintptr_t at) {
  Text message;
  message << "write to free memory of a heap: behind ";
  tell(message.hex(at), nullptr);
}

void look_for_damage(Region* region) {
  if (const uintptr_t at = region->take_damage()) tell_damage(at);
}

// A live block; ends the process for what is none.
Region::Block known(Region* region, const void* block, const char* function) {
  const Region::Block what = region->look(block);
  if (what.seen == Seen::nothing || what.seen == Seen::free) fail_invalid(function, block);
  return what;
}

// Memory may be had that other heaps hold back.
void* insist(Region* region, size_t alignment, size_t size) {
  void* block = region->allocate(alignment, size);
  const bool asks_again = block == nullptr && region->kind() == Region::Kind::reserved && idle::reclaim();
  if (asks_again) block = region->allocate(alignment, size);
  if (block == nullptr) look_for_damage(region);
  return block;
}

}  // namespace

void* region_allocate(Region* region, size_t alignment, size_t size, bool zeroed) {
  const bool possible = alignment <= kMaxAlignment && size <= kMaxRequest;
  void* block = possible ? insist(region, alignment, size) : nullptr;
  if (block == nullptr) return out_of_memory();
  return zeroed ? __builtin_memset(block, 0, size) : block;
}

bool free_in_region(void* block, size_t size) {
  Region* region = regions::find(block);
  if (region == nullptr) return false;
  if (!kHardened || size == hardened::kUnknown) size = Region::kUnknown;
  const Region::Block what = region->free(block, size);
  switch (what.seen) {
  case Seen::block:
    if (size != Region::kUnknown && size != what.asked) tell_size(block, what.asked, size);
    break;
  case Seen::nothing: tell_invalid(block); break;
  case Seen::free: tell_twice(block); break;
  case Seen::overrun: tell_overrun(block, what.asked, "its free"); break;
  case Seen::lost: break;
  }
  look_for_damage(region);
  return true;
}

size_t size_in_region(Region* region, const void* block, const char* function) {
  return known(region, block, function).usable;
}

size_t asked_in_region(Region* region, const void* block, const char* function) {
  return known(region, block, function).asked;
}

void* resize_in_region(Region* region, void* block, size_t size, bool stays) {
  if (region->resize(block, size)) return block;
  void* copy = stays ? nullptr : insist(region, kBlockAlign, size);
  if (copy == nullptr) return nullptr;
  const size_t present = region->look(block).asked;
  __builtin_memcpy(copy, block, size < present ? size : present);
  free_in_region(block);
  return copy;
}

void* reallocate_in_region(Region* region, void* block, size_t alignment, size_t size) {
  const Region::Block what = known(region, block, "realloc");
  if (what.seen == Seen::overrun) tell_overrun(block, what.asked, "its realloc");
  if (what.seen != Seen::block) return out_of_memory();
  auto resize = [=] { return address_of(block) % alignment == 0 && region->resize(block, size) ? block : nullptr; };
  return reallocate_by(block, what.usable, size, resize,
                       [=] { return region_allocate(region, alignment, size, false); });
}

size_t expand_in_region(Region* region, void* block, size_t size) {
  const Region::Block what = known(region, block, "rh_expand");
  if (size <= what.usable) return what.usable;
  return region->resize(block, size) ? region->look(block).usable : 0;
}

}  // namespace rh::rules
