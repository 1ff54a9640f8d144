// Every heap keeps its original: calls with flags that need it, blocks made before us, and heaps that are not plain
// stay there. The process heap's blocks are the peer's own; other plain heaps are the peer's first-class heaps, if it
// has any.
#include <windows.h>

#include <atomic>

#include "peer.h"
#include "redirect/heap/functions.h"

namespace rh::heaps {

namespace {

constexpr ULONG kTaken = HEAP_NO_SERIALIZE | HEAP_GENERATE_EXCEPTIONS | HEAP_ZERO_MEMORY | HEAP_REALLOC_IN_PLACE_ONLY;
constexpr ULONG kPlain = HEAP_NO_SERIALIZE | HEAP_GROWABLE | HEAP_GENERATE_EXCEPTIONS;
constexpr SIZE_T kNoSize = ~SIZE_T{0};

Originals g_originals;
HANDLE g_process_heap;

template <Role kRole, typename Result, typename... Arguments> Result original(Arguments... arguments) {
  using Function = Result NTAPI(Arguments...);
  return reinterpret_cast<Function*>(const_cast<void*>(g_originals[kRole]))(arguments...);
}

// ---- private heaps: few, looked up by handle ----------------------------------------------------

constexpr size_t kMostHeaps = 1024;
struct Entry {
  std::atomic<HANDLE> handle;
  std::atomic<void*> heap;
};
Entry g_heaps[kMostHeaps];

Entry* entry_of(HANDLE handle) {
  size_t place = reinterpret_cast<uintptr_t>(handle) >> 12;
  for (size_t i = 0; i < kMostHeaps; ++i) {
    Entry& entry = g_heaps[(place + i) % kMostHeaps];
    HANDLE there = entry.handle.load(std::memory_order_acquire);
    if (there == handle) return &entry;
    if (there == nullptr) return nullptr;
  }
  return nullptr;
}

// A handle that was destroyed keeps its place, for the next heap there.
void enter(HANDLE handle, void* heap) {
  size_t place = reinterpret_cast<uintptr_t>(handle) >> 12;
  for (size_t i = 0; i < kMostHeaps; ++i) {
    Entry& entry = g_heaps[(place + i) % kMostHeaps];
    HANDLE there = nullptr;
    if (!entry.handle.compare_exchange_strong(there, handle) && there != handle) continue;
    entry.heap.store(heap, std::memory_order_release);
    return;
  }
}

void* heap_of(HANDLE handle) {
  Entry* entry = entry_of(handle);
  return entry != nullptr ? entry->heap.load(std::memory_order_acquire) : nullptr;
}

// ---- the functions ------------------------------------------------------------------------------

// A thread's first and last blocks are taken while it has no thread-local variables; peers may need theirs.
bool thread_is_whole() { return __readgsqword(0x58) != 0; }

void* failed(ULONG flags) {
  SetLastError(ERROR_NOT_ENOUGH_MEMORY);
  if ((flags & HEAP_GENERATE_EXCEPTIONS) != 0) RaiseException(STATUS_NO_MEMORY, 0, 0, nullptr);
  return nullptr;
}

void* NTAPI allocate(HANDLE handle, ULONG flags, SIZE_T size) {
  if ((flags & ~kTaken) != 0 || !thread_is_whole()) return original<Role::allocate, void*>(handle, flags, size);
  const bool zero = (flags & HEAP_ZERO_MEMORY) != 0;
  void* block = nullptr;
  if (handle == g_process_heap) {
    block = zero ? peer_zalloc(size) : peer_malloc(size);
  } else {
    void* heap = heap_of(handle);
    if (heap == nullptr) return original<Role::allocate, void*>(handle, flags, size);
    block = zero ? peer_heap_zalloc(heap, size) : peer_heap_malloc(heap, size);
  }
  return block != nullptr ? block : failed(flags);
}

BOOLEAN NTAPI release(HANDLE handle, ULONG flags, void* block) {
  if (block == nullptr || peer_free(block) != 0) return TRUE;
  return original<Role::free, BOOLEAN>(handle, flags, block);
}

void* resize(HANDLE handle, void* block, SIZE_T size) {
  if (handle == g_process_heap) return peer_realloc(block, size);
  void* heap = heap_of(handle);
  return heap != nullptr ? peer_heap_realloc(heap, block, size) : peer_realloc(block, size);
}

void* NTAPI reallocate(HANDLE handle, ULONG flags, void* block, SIZE_T size) {
  if (block == nullptr || !peer_owns(block)) return original<Role::reallocate, void*>(handle, flags, block, size);
  const size_t before = peer_size(block);
  const bool stays = (flags & HEAP_REALLOC_IN_PLACE_ONLY) != 0;
  void* resized = stays ? (peer_fits(block, size) ? block : nullptr) : resize(handle, block, size);
  if (resized == nullptr) return failed(flags);
  if ((flags & HEAP_ZERO_MEMORY) != 0 && size > before)
    __builtin_memset(static_cast<char*>(resized) + before, 0, size - before);
  return resized;
}

SIZE_T NTAPI size_of(HANDLE handle, ULONG flags, const void* block) {
  if (block == nullptr) return kNoSize;
  return peer_owns(block) ? peer_size(block) : original<Role::size, SIZE_T>(handle, flags, block);
}

HANDLE NTAPI create(ULONG flags, void* base, SIZE_T reserve, SIZE_T commit, void* lock, void* parameters) {
  HANDLE handle = original<Role::create, HANDLE>(flags, base, reserve, commit, lock, parameters);
  const bool grows = (flags & HEAP_GROWABLE) != 0 || reserve == 0;
  const bool plain = (flags & ~kPlain) == 0 && grows && base == nullptr && lock == nullptr && parameters == nullptr;
  if (handle == nullptr || !plain) return handle;
  if (void* heap = peer_heap_new()) enter(handle, heap);
  return handle;
}

HANDLE NTAPI destroy(HANDLE handle) {
  Entry* entry = entry_of(handle);
  void* heap = entry != nullptr ? entry->heap.exchange(nullptr) : nullptr;
  if (heap != nullptr) peer_heap_destroy(heap);
  return original<Role::destroy, HANDLE>(handle);
}

BOOLEAN NTAPI validate(HANDLE handle, ULONG flags, const void* block) {
  if (block != nullptr && peer_owns(block)) return TRUE;
  return original<Role::validate, BOOLEAN>(handle, flags, block);
}

BOOLEAN NTAPI get_user_info(HANDLE handle, ULONG flags, void* block, void** value, ULONG* own) {
  if (!peer_owns(block)) return original<Role::get_user_info, BOOLEAN>(handle, flags, block, value, own);
  if (value != nullptr) *value = nullptr;
  if (own != nullptr) *own = 0;
  return TRUE;
}

BOOLEAN NTAPI set_user_value(HANDLE handle, ULONG flags, void* block, void* value) {
  return peer_owns(block) ? FALSE : original<Role::set_user_value, BOOLEAN>(handle, flags, block, value);
}

BOOLEAN NTAPI set_user_flags(HANDLE handle, ULONG flags, void* block, ULONG clear, ULONG set) {
  return peer_owns(block) ? FALSE : original<Role::set_user_flags, BOOLEAN>(handle, flags, block, clear, set);
}

template <typename Code> const void* address_of(Code* function) { return reinterpret_cast<const void*>(function); }

}  // namespace

const void* replacement(Role role) {
  // In the order of the roles. Walking, compacting and locking stay the original's.
  const void* const all[] = {address_of(allocate),
                             address_of(reallocate),
                             address_of(release),
                             address_of(size_of),
                             address_of(create),
                             address_of(destroy),
                             address_of(validate),
                             nullptr,
                             nullptr,
                             nullptr,
                             nullptr,
                             address_of(get_user_info),
                             address_of(set_user_value),
                             address_of(set_user_flags),
                             nullptr,
                             nullptr};
  static_assert(sizeof(all) / sizeof(all[0]) == kRoles);
  return all[static_cast<size_t>(role)];
}

const char* begin(const Originals& originals) {
  g_originals = originals;
  g_process_heap = GetProcessHeap();
  return nullptr;
}

}  // namespace rh::heaps
