// The system's heap functions, each passed on to what it did before, and told of: in the place of functions.cpp of
// reheap.dll. Which heap a block is of is not told; the blocks of one that is destroyed are freed with it.
#include "redirect/heap/functions.h"

#include <windows.h>

#include "call.h"
#include "stream/system.h"

namespace rh::heaps {
namespace {

using recorder::Call;
using recorder::ticks_now;
using trace::Kind;

constinit Originals g_originals = {};

template <typename Function> Function* original(Role role) {
  return reinterpret_cast<Function*>(const_cast<void*>(g_originals[role]));
}

void* NTAPI allocate(HANDLE heap, ULONG flags, SIZE_T size) {
  Call call;
  void* block = original<void * NTAPI(HANDLE, ULONG, SIZE_T)>(Role::allocate)(heap, flags, size);
  call.tell((flags & HEAP_ZERO_MEMORY) != 0 ? Kind::kCalloc : Kind::kMalloc, block, size);
  return block;
}

// Without a block there is nothing to resize, and to a size of 0 it stays one.
void* NTAPI reallocate(HANDLE heap, ULONG flags, void* before, SIZE_T size) {
  Call call;
  const uint64_t begin = ticks_now();
  void* block = original<void * NTAPI(HANDLE, ULONG, void*, SIZE_T)>(Role::reallocate)(heap, flags, before, size);
  if (block != nullptr && call.is_outermost())
    recorder::reallocated(begin, before, block, size);
  else
    call.tell(Kind::kRealloc, block, size);
  return block;
}

ULONG NTAPI free(HANDLE heap, ULONG flags, void* block) {
  Call call;
  call.tell_free(block);
  return original<ULONG NTAPI(HANDLE, ULONG, void*)>(Role::free)(heap, flags, block);
}

void tell_blocks_of(HANDLE heap) {
  Call call;
  if (!call.is_outermost()) return;
  recorder::system::Quiet quiet;
  PROCESS_HEAP_ENTRY entry = {};
  while (HeapWalk(heap, &entry))
    if ((entry.wFlags & PROCESS_HEAP_ENTRY_BUSY) != 0) call.tell_free(entry.lpData);
}

// The process's own cannot be destroyed. What the system has allocated for the heap it frees by itself.
HANDLE NTAPI destroy(HANDLE heap) {
  if (heap != nullptr && heap != GetProcessHeap()) tell_blocks_of(heap);
  return original<HANDLE NTAPI(HANDLE)>(Role::destroy)(heap);
}

template <typename Function> const void* address_of(Function* function) {
  return reinterpret_cast<const void*>(function);
}

}  // namespace

const void* replacement(Role role) {
  if (role == Role::allocate) return address_of(allocate);
  if (role == Role::reallocate) return address_of(reallocate);
  if (role == Role::free) return address_of(free);
  return role == Role::destroy ? address_of(destroy) : nullptr;
}

const char* begin(const Originals& originals) {
  g_originals = originals;
  return nullptr;
}

}  // namespace rh::heaps
