// Every heap keeps its original: calls with flags that need it, blocks made before us, and heaps that are not plain
// stay there. The process heap's blocks are the peer's own; other plain heaps are the peer's first-class heaps, if it
// has any.
#include "heaps.h"

#include <windows.h>

#include <atomic>

#include "peer.h"
#include "redirect/heap/layer.h"
#include "redirect/patcher/image.h"
#include "redirect/patcher/patch.h"

namespace rh::peers {

namespace {

using redirect::CodeMemory;
using redirect::Image;
using redirect::Patch;

constexpr ULONG kTaken = HEAP_NO_SERIALIZE | HEAP_GENERATE_EXCEPTIONS | HEAP_ZERO_MEMORY | HEAP_REALLOC_IN_PLACE_ONLY;
constexpr ULONG kPlain = HEAP_NO_SERIALIZE | HEAP_GROWABLE | HEAP_GENERATE_EXCEPTIONS;
constexpr SIZE_T kNoSize = ~SIZE_T{0};

// What the functions did before, in the order of kFunctions.
struct {
  void*(NTAPI* allocate)(HANDLE, ULONG, SIZE_T);
  void*(NTAPI* reallocate)(HANDLE, ULONG, void*, SIZE_T);
  BOOLEAN(NTAPI* free)(HANDLE, ULONG, void*);
  SIZE_T(NTAPI* size)(HANDLE, ULONG, const void*);
  HANDLE(NTAPI* create)(ULONG, void*, SIZE_T, SIZE_T, void*, void*);
  HANDLE(NTAPI* destroy)(HANDLE);
  BOOLEAN(NTAPI* validate)(HANDLE, ULONG, const void*);
  BOOLEAN(NTAPI* get_user_info)(HANDLE, ULONG, void*, void**, ULONG*);
  BOOLEAN(NTAPI* set_user_value)(HANDLE, ULONG, void*, void*);
  BOOLEAN(NTAPI* set_user_flags)(HANDLE, ULONG, void*, ULONG, ULONG);
} g_original;

HANDLE g_process_heap;

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
  if ((flags & ~kTaken) != 0 || !thread_is_whole()) return g_original.allocate(handle, flags, size);
  const bool zero = (flags & HEAP_ZERO_MEMORY) != 0;
  void* block = nullptr;
  if (handle == g_process_heap) {
    block = zero ? peer_zalloc(size) : peer_malloc(size);
  } else {
    void* heap = heap_of(handle);
    if (heap == nullptr) return g_original.allocate(handle, flags, size);
    block = zero ? peer_heap_zalloc(heap, size) : peer_heap_malloc(heap, size);
  }
  return block != nullptr ? block : failed(flags);
}

BOOLEAN NTAPI release(HANDLE handle, ULONG flags, void* block) {
  if (block == nullptr || peer_free(block) != 0) return TRUE;
  return g_original.free(handle, flags, block);
}

void* resize(HANDLE handle, void* block, SIZE_T size) {
  if (handle == g_process_heap) return peer_realloc(block, size);
  void* heap = heap_of(handle);
  return heap != nullptr ? peer_heap_realloc(heap, block, size) : peer_realloc(block, size);
}

void* NTAPI reallocate(HANDLE handle, ULONG flags, void* block, SIZE_T size) {
  if (block == nullptr || !peer_owns(block)) return g_original.reallocate(handle, flags, block, size);
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
  return peer_owns(block) ? peer_size(block) : g_original.size(handle, flags, block);
}

HANDLE NTAPI create(ULONG flags, void* base, SIZE_T reserve, SIZE_T commit, void* lock, void* parameters) {
  HANDLE handle = g_original.create(flags, base, reserve, commit, lock, parameters);
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
  return g_original.destroy(handle);
}

BOOLEAN NTAPI validate(HANDLE handle, ULONG flags, const void* block) {
  if (block != nullptr && peer_owns(block)) return TRUE;
  return g_original.validate(handle, flags, block);
}

BOOLEAN NTAPI get_user_info(HANDLE handle, ULONG flags, void* block, void** value, ULONG* own) {
  if (!peer_owns(block)) return g_original.get_user_info(handle, flags, block, value, own);
  if (value != nullptr) *value = nullptr;
  if (own != nullptr) *own = 0;
  return TRUE;
}

BOOLEAN NTAPI set_user_value(HANDLE handle, ULONG flags, void* block, void* value) {
  return peer_owns(block) ? FALSE : g_original.set_user_value(handle, flags, block, value);
}

BOOLEAN NTAPI set_user_flags(HANDLE handle, ULONG flags, void* block, ULONG clear, ULONG set) {
  return peer_owns(block) ? FALSE : g_original.set_user_flags(handle, flags, block, clear, set);
}

struct Function {
  const char* name;
  const void* replacement;
  void* original;  // where it goes
  bool optional;
};

template <typename Code>
const void* code(Code* function) {
  return reinterpret_cast<const void*>(function);
}

const Function kFunctions[] = {
    {"RtlAllocateHeap", code(allocate), &g_original.allocate, false},
    {"RtlReAllocateHeap", code(reallocate), &g_original.reallocate, false},
    {"RtlFreeHeap", code(release), &g_original.free, false},
    {"RtlSizeHeap", code(size_of), &g_original.size, false},
    {"RtlCreateHeap", code(create), &g_original.create, false},
    {"RtlDestroyHeap", code(destroy), &g_original.destroy, false},
    {"RtlValidateHeap", code(validate), &g_original.validate, false},
    {"RtlGetUserInfoHeap", code(get_user_info), &g_original.get_user_info, true},
    {"RtlSetUserValueHeap", code(set_user_value), &g_original.set_user_value, true},
    {"RtlSetUserFlagsHeap", code(set_user_flags), &g_original.set_user_flags, true},
};
constexpr size_t kFunctionCount = sizeof kFunctions / sizeof *kFunctions;

Patch g_patches[kFunctionCount];
CodeMemory g_memory;
bool g_replaced;

}  // namespace

const char* replace_heaps() {
  g_process_heap = GetProcessHeap();
  const Image ntdll(GetModuleHandleW(L"ntdll.dll"));
  if (!ntdll.valid() || !g_memory.open_near(ntdll.whole())) return "there is no room near ntdll";
  size_t count = 0;
  for (const Function& function : kFunctions) {
    uint8_t* entry = ntdll.function(function.name);
    if (entry == nullptr && function.optional) continue;
    if (entry == nullptr) return function.name;
    entry = redirect::follow_jumps(entry, ntdll.whole());
    Patch& patch = g_patches[count++];
    if (const char* problem = prepare(ntdll.extent(entry), function.replacement, g_memory, &patch)) return problem;
    *static_cast<const void**>(function.original) = patch.original;
  }
  if (!g_memory.seal()) return "the process forbids new code";
  const char* problem = commit(g_patches, count);
  g_replaced = problem == nullptr;
  return problem;
}

}  // namespace rh::peers

// What the finder of C runtimes asks of the layer below.
bool rh::heaps::is_replaced() { return rh::peers::g_replaced; }
