// A C runtime's allocation functions, each passed on to what it did before, and told of: in the place of
// own_functions.cpp of reheap.dll.
#include "base/compiler.h"
#include "call.h"
#include "redirect/crt/replacements.h"

namespace rh::redirect {
namespace {

using recorder::Call;
using recorder::ticks_now;
using trace::Kind;

// Of realloc and its relatives.
void tell_moved(const Call& call, uint64_t begin, const void* before, const void* block, size_t size) {
  if (before == nullptr)
    call.tell(Kind::kMalloc, block, size);
  else if (!call.is_outermost())
    return;
  else if (block != nullptr)
    recorder::reallocated(begin, before, block, size);
  else if (size == 0)
    recorder::freed(before, begin);
  else
    recorder::failed(Kind::kRealloc, size);
}

size_t product(size_t count, size_t size) {
  size_t bytes = 0;
  return __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes;
}

// What is done for a function is the same in every slot: it is compiled once, not for each of them.

template <typename Result, typename... Arguments> Result original(Slot& slot, Role role, Arguments... arguments) {
  using Function = Result(Arguments...);
  return reinterpret_cast<Function*>(const_cast<void*>(slot.originals[role]))(arguments...);
}

template <typename... Arguments>
RH_NOINLINE void* allocate(Slot& slot, Role role, Kind kind, size_t size, Arguments... arguments) {
  Call call;
  void* block = original<void*>(slot, role, arguments...);
  call.tell(kind, block, size);
  return block;
}

template <typename... Arguments>
RH_NOINLINE void* allocate_aligned(Slot& slot, Role role, size_t size, size_t alignment, Arguments... arguments) {
  Call call;
  void* block = original<void*>(slot, role, arguments...);
  call.tell(Kind::kAligned, block, size, alignment);
  return block;
}

template <typename... Arguments>
RH_NOINLINE void* move(Slot& slot, Role role, size_t size, void* before, Arguments... arguments) {
  Call call;
  const uint64_t begin = ticks_now();
  void* block = original<void*>(slot, role, before, arguments...);
  tell_moved(call, begin, before, block, size);
  return block;
}

RH_NOINLINE void give_back(Slot& slot, Role role, void* block) {
  Call call;
  call.tell_free(block);
  original<void>(slot, role, block);
}

RH_NOINLINE void* expand_block(Slot& slot, void* block, size_t size) {
  Call call;
  const uint64_t begin = ticks_now();
  void* same = original<void*>(slot, Role::expand, block, size);
  if (call.is_outermost() && same != nullptr) recorder::reallocated(begin, block, same, size);
  return same;
}

template <unsigned kSlot> struct Functions {
  static Slot& slot() { return g_slots[kSlot]; }

  static void* malloc(size_t size) { return allocate(slot(), Role::malloc, Kind::kMalloc, size, size); }
  static void* calloc(size_t count, size_t size) {
    return allocate(slot(), Role::calloc, Kind::kCalloc, product(count, size), count, size);
  }
  static void* realloc(void* block, size_t size) { return move(slot(), Role::realloc, size, block, size); }
  static void free(void* block) { give_back(slot(), Role::free, block); }
  static void* recalloc(void* block, size_t count, size_t size) {
    return move(slot(), Role::recalloc, product(count, size), block, count, size);
  }
  static size_t msize(void* block) { return original<size_t>(slot(), Role::msize, block); }
  static void* expand(void* block, size_t size) { return expand_block(slot(), block, size); }

  static void* aligned_malloc(size_t size, size_t alignment) {
    return allocate_aligned(slot(), Role::aligned_malloc, size, alignment, size, alignment);
  }
  static void* aligned_offset_malloc(size_t size, size_t alignment, size_t offset) {
    return allocate_aligned(slot(), Role::aligned_offset_malloc, size, alignment, size, alignment, offset);
  }
  static void* aligned_realloc(void* block, size_t size, size_t alignment) {
    return move(slot(), Role::aligned_realloc, size, block, size, alignment);
  }
  static void* aligned_recalloc(void* block, size_t count, size_t size, size_t alignment) {
    return move(slot(), Role::aligned_recalloc, product(count, size), block, count, size, alignment);
  }
  static void* aligned_offset_realloc(void* block, size_t size, size_t alignment, size_t offset) {
    return move(slot(), Role::aligned_offset_realloc, size, block, size, alignment, offset);
  }
  static void* aligned_offset_recalloc(void* block, size_t count, size_t size, size_t alignment, size_t offset) {
    return move(slot(), Role::aligned_offset_recalloc, product(count, size), block, count, size, alignment, offset);
  }
  static void aligned_free(void* block) { give_back(slot(), Role::aligned_free, block); }
  static size_t aligned_msize(void* block, size_t alignment, size_t offset) {
    return original<size_t>(slot(), Role::aligned_msize, block, alignment, offset);
  }

  static int heapmin() { return original<int>(slot(), Role::heapmin); }

  static void* operator_new(size_t size) { return allocate(slot(), Role::operator_new, Kind::kMalloc, size, size); }
  static void* operator_new_nothrow(size_t size, const void* tag) {
    return allocate(slot(), Role::operator_new_nothrow, Kind::kMalloc, size, size, tag);
  }
  static void operator_delete(void* block) { give_back(slot(), Role::operator_delete, block); }

  static const void* of(Role role) { return plain_replacement<Functions>(role); }
};

}  // namespace

const void* replacement(unsigned slot, Role role) { return replacement_of<Functions>(slot, role); }

void set_host(unsigned, const Image&, bool) {}

bool has_blocks_of_its_own() { return false; }

}  // namespace rh::redirect
