#include "functions.h"

#include "entry/copies.h"
#include "entry/windows/blocks.h"
#include "handles.h"
#include "hardened/misuse.h"
#include "heap/heap.h"
#include "heap/idle.h"
#include "heap/shared.h"
#include "platform/windows/system.h"

// Of ntdll: what its own heap reports failures by; and the process's environment block.
extern "C" {
__declspec(dllimport) void NTAPI RtlSetLastWin32ErrorAndNtStatusFromNtStatus(LONG status);
__declspec(dllimport) const char* NTAPI RtlGetCurrentPeb(void);
}

namespace rh::heaps {

static_assert(kExactSizes, "HeapSize is exact, and freed blocks are known by their notes");

namespace {

constexpr LONG kNoMemory = static_cast<LONG>(0xC0000017);
constexpr LONG kInvalidParameter = static_cast<LONG>(0xC000000D);
constexpr LONG kNoMoreEntries = static_cast<LONG>(0x8000001A);
constexpr SIZE_T kFailed = static_cast<SIZE_T>(-1);

// What an allocation may ask of us. Everything else (user values, settable handles, tags) is the original's to do.
constexpr ULONG kInPlace = HEAP_REALLOC_IN_PLACE_ONLY;
constexpr ULONG kFastFlags = HEAP_NO_SERIALIZE | HEAP_GENERATE_EXCEPTIONS;
constexpr ULONG kServedFlags = kFastFlags | HEAP_ZERO_MEMORY | kInPlace;

// With which a heap is plain: the two above and what says nothing of blocks.
constexpr ULONG kClass = 0xF000;
constexpr ULONG kPlainFlags = kFastFlags | HEAP_GROWABLE | kClass;

// What RtlWalkHeap is given; HeapWalk translates it. The same in 32 and 64 bits but for the pointers.
struct WalkEntry {
  void* block;
  SIZE_T size;
  UCHAR overhead;
  UCHAR region;
  USHORT flags;
  union {
    struct {
      SIZE_T value;
      USHORT tag, trace;
      ULONG reserved[2];
    } user;
    struct {
      ULONG committed, uncommitted;
      void *first, *last;
    } range;
  };
};
constexpr USHORT kBusyEntry = 1;

constinit Originals g_originals = {};
constinit HANDLE g_process_heap = nullptr;
constinit Served g_process = {};
constinit Handles g_handles = {};
// The process heap while it is not locked, else what is nobody's handle, as NULL may be: for the fast paths, which ask
// nothing else.
constexpr const void* kNoHandle = &g_process;
constinit std::atomic<const void*> g_unlocked_process_heap{kNoHandle};

template <typename Function> Function* original(Role role) {
  return reinterpret_cast<Function*>(const_cast<void*>(g_originals[role]));
}

template <typename Function> const void* address_of(Function* function) {
  return reinterpret_cast<const void*>(function);
}

// What serves the handle, or null: the original alone does.
Served* served(HANDLE handle) { return handle == g_process_heap ? &g_process : g_handles.find(handle); }

// ---- failures, as ntdll's heap reports them -----------------------------------------------------

ULONG fail(LONG status) {
  RtlSetLastWin32ErrorAndNtStatusFromNtStatus(status);
  return FALSE;
}

ULONG invalid() { return fail(kInvalidParameter); }

void* refuse() {
  invalid();
  return nullptr;
}

RH_COLD void* out_of_memory(ULONG flags, SIZE_T size) {
  fail(kNoMemory);
  if ((flags & HEAP_GENERATE_EXCEPTIONS) != 0) {
    ULONG_PTR asked = size;
    RaiseException(static_cast<DWORD>(kNoMemory), 0, 1, &asked);
  }
  return nullptr;
}

// ---- the lock -----------------------------------------------------------------------------------

using LockFunction = ULONG NTAPI(HANDLE);

// At the end of the process Windows stops the other threads wherever they are. What they held of the original's locks
// is never released, so these are left alone from then on.
bool is_last_thread() { return platform::others_are_gone(); }

bool is_held_here(const Served* of) { return of->holder.load(std::memory_order_relaxed) == GetCurrentThreadId(); }

bool take_lock(HANDLE handle) { return static_cast<BOOLEAN>(original<LockFunction>(Role::lock)(handle)) != 0; }

// Held for a call, but not by who has it already: waits while another thread holds the heap's lock. (A call that is
// just under way when the lock is taken is not waited for.) The helper does not wait: its start and its end allocate
// under the loader's lock, which the holder may need next, or have to wait for when the process ends; and a program
// that has but one thread expects none to wait.
class CallLock {
 public:
  CallLock(HANDLE handle, const Served* of, ULONG flags) {
    if (of == nullptr || of->locked.load(std::memory_order_acquire) == 0) return;
    bool waits = ((flags | of->flags) & HEAP_NO_SERIALIZE) == 0 && !is_held_here(of);
    if (waits && !is_last_thread() && !platform::is_helper() && take_lock(handle)) locked_ = handle;
  }
  ~CallLock() {
    if (locked_ != nullptr) original<LockFunction>(Role::unlock)(locked_);
  }
  CallLock(const CallLock&) = delete;
  CallLock& operator=(const CallLock&) = delete;

 private:
  HANDLE locked_ = nullptr;
};

ULONG NTAPI lock(HANDLE handle) {
  Served* of = served(handle);
  if (of != nullptr && is_last_thread()) return TRUE;
  ULONG result = original<LockFunction>(Role::lock)(handle);
  if (of == nullptr || static_cast<BOOLEAN>(result) == 0) return result;
  of->holder.store(GetCurrentThreadId(), std::memory_order_relaxed);
  of->locked.fetch_add(1, std::memory_order_acq_rel);
  if (of == &g_process) g_unlocked_process_heap.store(kNoHandle, std::memory_order_release);
  return result;
}

ULONG NTAPI unlock(HANDLE handle) {
  Served* of = served(handle);
  if (of != nullptr && is_last_thread()) return TRUE;
  if (of != nullptr && of->locked.load(std::memory_order_acquire) != 0) {
    bool free = of->locked.fetch_sub(1, std::memory_order_acq_rel) == 1;
    if (free) of->holder.store(0, std::memory_order_relaxed);
    if (free && of == &g_process) g_unlocked_process_heap.store(g_process_heap, std::memory_order_release);
  }
  return original<LockFunction>(Role::unlock)(handle);
}

// ---- blocks -------------------------------------------------------------------------------------

// A block of a heap that was made for a handle must come with that handle; one of the threads' heaps may come with any:
// C runtimes with a heap of their own give its handle for what malloc made.
bool may_come_with(const Served* of, const Span* span) {
  Heap* home = shared::heap_of(span);
  return home == nullptr || (of != nullptr && of->heap == home);
}

bool is_block_of(const Served* of, const void* block) {
  if constexpr (kHardened)
    if (hardened::is_empty_block(block)) return true;
  return blocks::is_live(block) && may_come_with(of, find_block(block).span);
}

// A hardened build ends the process for what is freed by mistake, or resized, as Windows' heap does where it notices;
// any other for what lies on guarded pages and is no live block.
bool may_change(const Served* of, const void* block, const char* function) {
  if (is_block_of(of, block)) return true;
  if constexpr (kHardened)
    hardened::tell_heap(block, blocks::size_of(block, function));
  else if (BlockAt at = find_block(block); at.is_guarded() && !at.is_live())
    guards::fail_invalid(at.span, function, block);
  return false;
}

bool free_ours(const Served* of, void* block) {
  if (kHardened && !blocks::is_live(block)) {
    blocks::free(block);  // knows best what it is
    return false;
  }
  return may_change(of, block, "HeapFree") && blocks::free(block);
}

// Of the blocks of a region, a heap over the program's memory or near code; they have no handle. Where nothing is
// certain any more, as when the process ends, all may be one.
bool is_block_in(Region* region, const void* block) {
  Region::Seen seen = region->look(block).seen;
  return seen != Region::Seen::nothing && seen != Region::Seen::free;
}

bool may_change(Region* region, const void* block, const char* function) {
  if (is_block_in(region, block)) return true;
  if constexpr (kHardened) fail_invalid(function, block);
  return false;
}

bool free_in(Region* region, void* block) {
  bool is_one = is_block_in(region, block);
  if (is_one || kHardened) rules::free_in_region(block);  // which tells what is wrong
  return is_one;
}

void* take_from(Heap* heap, SIZE_T size, bool zeroed) { return blocks::allocate_in(heap, kBlockAlign, size, zeroed); }

using Allocate = void* NTAPI(HANDLE, ULONG, SIZE_T);
using Free = ULONG NTAPI(HANDLE, ULONG, void*);
using Reallocate = void* NTAPI(HANDLE, ULONG, void*, SIZE_T);
using Size = SIZE_T NTAPI(HANDLE, ULONG, const void*);

bool holds_loader_lock() {
  constexpr size_t kLoaderLock = k64Bit ? 0x110 : 0xA0;  // in that block
  const CRITICAL_SECTION* lock = nullptr;
  __builtin_memcpy(&lock, RtlGetCurrentPeb() + kLoaderLock, sizeof(lock));
  return reinterpret_cast<uintptr_t>(lock->OwningThread) == GetCurrentThreadId();
}

// Where we find no memory, or may take no more, the heap beside ours may have some yet. The loader gets it, for a
// thread that can have none at its start ends with the loader's lock, and nothing starts or ends any more. A limit is
// on what the program takes, and what is hardened are the program's blocks. At the end of the process the original's
// lock is left alone.
RH_COLD void* take_from_original(HANDLE handle, ULONG flags, SIZE_T size) {
  if (!holds_loader_lock() || is_last_thread()) return nullptr;
  return original<Allocate>(Role::allocate)(handle, flags & ~ULONG{HEAP_GENERATE_EXCEPTIONS}, size);
}

RH_COLD void* allocate_cold(HANDLE handle, ULONG flags, SIZE_T size) {
  Served* of = (flags & ~kServedFlags) == 0 ? served(handle) : nullptr;
  if (of == nullptr) return original<Allocate>(Role::allocate)(handle, flags, size);
  void* block = nullptr;
  {
    CallLock lock(handle, of, flags);
    block = take_from(of->heap, size, (flags & HEAP_ZERO_MEMORY) != 0);
  }
  if (block == nullptr) block = take_from_original(handle, flags, size);
  return block != nullptr ? block : out_of_memory(flags | of->flags, size);
}

void* NTAPI allocate(HANDLE handle, ULONG flags, SIZE_T size) {
  bool plain = handle == g_unlocked_process_heap.load(std::memory_order_relaxed) && (flags & ~kFastFlags) == 0;
  if (!kHardened && RH_LIKELY(plain)) {
    if (void* block = allocate_fast(size)) return block;
  }
  return allocate_cold(handle, flags, size);
}

RH_COLD ULONG free_cold(HANDLE handle, ULONG flags, void* block) {
  if (in_realm(block)) {
    const Served* of = served(handle);
    CallLock lock(handle, of, flags);
    return free_ours(of, block) ? TRUE : invalid();
  }
  if (Region* region = regions::find(block)) return free_in(region, block) ? TRUE : invalid();
  if (copies::free(block)) return TRUE;
  return original<Free>(Role::free)(handle, flags, block);
}

RH_COLD ULONG free_to_mark(Span* slab) {
  free_reached_mark(slab);
  return TRUE;
}

ULONG NTAPI free(HANDLE handle, ULONG flags, void* block) {
  if (block == nullptr) return TRUE;
  bool unlocked = handle == g_unlocked_process_heap.load(std::memory_order_relaxed);
  Span* slab = !kHardened && RH_LIKELY(unlocked) ? own_live_slab(block) : nullptr;
  if (RH_UNLIKELY(slab == nullptr)) return free_cold(handle, flags, block);
  slab::note_free(slab, block);
  return free_own(thread_heap(), slab, static_cast<Block*>(block)) ? free_to_mark(slab) : TRUE;
}

SIZE_T NTAPI size_of(HANDLE handle, ULONG flags, const void* block) {
  if (in_realm(block)) {
    if (is_block_of(served(handle), block)) return blocks::size_of(block, "HeapSize");
    invalid();
    return kFailed;
  }
  if (Region* region = regions::find(block); region != nullptr && !is_block_in(region, block)) {
    invalid();
    return kFailed;
  }
  if (size_t bytes = 0; copies::bytes_from(block, &bytes)) return bytes;
  return original<Size>(Role::size)(handle, flags, block);
}

// ---- resizing -----------------------------------------------------------------------------------

void* move_to(Heap* heap, const void* old, SIZE_T present, SIZE_T size) {
  void* fresh = take_from(heap, size, false);
  if (fresh != nullptr) __builtin_memcpy(fresh, old, present < size ? present : size);
  return fresh;
}

// The block of `size` bytes, where it is or elsewhere in its heap; null when there is none, and the old one stands.
void* resize(void* block, SIZE_T present, SIZE_T size, bool in_place) {
  if (void* resized = blocks::resize_in_place(block, size, in_place ? Fit::loose : Fit::close)) return resized;
  if (in_place) return nullptr;
  if (void* moved = move_to(shared::heap_of(find_block(block).span), block, present, size)) {
    blocks::free(block);
    return moved;
  }
  return size < present ? blocks::resize_in_place(block, size, Fit::loose) : nullptr;
}

// Another copy's block comes over to us, unless it must stay where it is: that only its maker could do.
void* take_over(const Served* of, void* block, SIZE_T present, SIZE_T size, bool in_place) {
  if (in_place) return nullptr;
  void* fresh = move_to(of != nullptr ? of->heap : nullptr, block, present, size);
  if (fresh != nullptr) copies::free(block);
  return fresh;
}

void* NTAPI reallocate(HANDLE handle, ULONG flags, void* block, SIZE_T size) {
  bool ours = block != nullptr && in_realm(block), in_place = (flags & kInPlace) != 0;
  Region* region = ours ? nullptr : regions::find(block);
  size_t present = 0;
  if (region != nullptr && !may_change(region, block, "HeapReAlloc")) return refuse();
  if (!ours && (block == nullptr || !copies::bytes_from(block, &present)))
    return original<Reallocate>(Role::reallocate)(handle, flags, block, size);
  const Served* of = served(handle);
  void* resized = nullptr;
  {
    CallLock lock(handle, of, flags);
    if (ours && !may_change(of, block, "HeapReAlloc")) return refuse();
    if (ours) present = blocks::size_of(block, "HeapReAlloc");
    resized = ours                ? resize(block, present, size, in_place)
              : region != nullptr ? rules::resize_in_region(region, block, size, in_place)
                                  : take_over(of, block, present, size, in_place);
    if (resized != nullptr && (flags & HEAP_ZERO_MEMORY) != 0 && size > present)
      __builtin_memset(static_cast<char*>(resized) + present, 0, size - present);
  }
  if (resized != nullptr) return resized;
  return out_of_memory(of != nullptr ? flags | of->flags : flags, size);
}

// ---- heaps --------------------------------------------------------------------------------------

using Create = HANDLE NTAPI(ULONG, void*, SIZE_T, SIZE_T, void*, void*);
using Destroy = HANDLE NTAPI(HANDLE);
using Compact = SIZE_T NTAPI(HANDLE, ULONG);

// HeapCreate says of a heap without a maximum that it grows, but for Wine's, which passes no maximum on.
bool is_plain(ULONG flags, const void* base, SIZE_T most, const void* lock_of, const void* parameters) {
  bool grows = (flags & HEAP_GROWABLE) != 0 || most == 0;
  return grows && (flags & ~kPlainFlags) == 0 && base == nullptr && lock_of == nullptr && parameters == nullptr;
}

// Without memory or place for it the heap stays as it is.
void serve(HANDLE handle, ULONG flags) {
  Heap* heap = shared::create();
  if (heap != nullptr && !g_handles.add(handle, heap, flags)) destroy_heap(heap);
}

// What is to be committed at first would be so beside the memory of ours that the blocks lie in.
HANDLE NTAPI create(ULONG flags, void* base, SIZE_T reserve, SIZE_T commit, void* lock_of, void* parameters) {
  bool plain = is_plain(flags, base, reserve, lock_of, parameters);
  HANDLE handle = original<Create>(Role::create)(flags, base, reserve, plain ? 0 : commit, lock_of, parameters);
  if (handle != nullptr && plain) serve(handle, flags);
  return handle;
}

// The original goes last: as long as it is there, no new heap can have the same handle. At the end of the process it
// goes with that.
HANDLE NTAPI destroy(HANDLE handle) {
  if (Heap* heap = g_handles.remove(handle)) {
    destroy_heap(heap);
    if (is_last_thread()) return nullptr;
  }
  return original<Destroy>(Role::destroy)(handle);
}

SIZE_T NTAPI compact(HANDLE handle, ULONG flags) {
  if (const Served* of = served(handle)) {
    CallLock lock(handle, of, flags);
    if (of->heap != nullptr) shared::trim(of->heap);
    rules::trim();
  }
  return original<Compact>(Role::compact)(handle, flags);
}

// ---- looking around -----------------------------------------------------------------------------

using Validate = ULONG NTAPI(HANDLE, ULONG, const void*);
using Walk = LONG NTAPI(HANDLE, WalkEntry*);
using GetUserInfo = ULONG NTAPI(HANDLE, ULONG, void*, void**, ULONG*);
using SetUserValue = ULONG NTAPI(HANDLE, ULONG, void*, void*);
using SetUserFlags = ULONG NTAPI(HANDLE, ULONG, void*, ULONG, ULONG);

ULONG NTAPI validate(HANDLE handle, ULONG flags, const void* block) {
  if (block != nullptr && in_realm(block)) {
    if constexpr (kHardened)
      if (!hardened::is_intact(block)) return FALSE;
    return is_block_of(served(handle), block) ? TRUE : FALSE;
  }
  if (Region* region = regions::find(block)) return region->look(block).seen == Region::Seen::block ? TRUE : FALSE;
  if (block != nullptr && copies::made(block)) return TRUE;
  return original<Validate>(Role::validate)(handle, flags, block);
}

LONG walk_to_next(Heap* heap, WalkEntry* entry) {
  void* next = shared::next_block(heap, entry->block);
  if (next == nullptr) return kNoMoreEntries;
  *entry = {};
  entry->block = next;
  entry->size = requested_size(next, "HeapWalk");
  entry->flags = kBusyEntry;
  return 0;
}

// First what the original has, then ours. Of the process heap only the former: which of the threads' blocks are in
// somebody's hands nobody can tell without stopping them all.
LONG NTAPI walk(HANDLE handle, WalkEntry* entry) {
  const Served* of = served(handle);
  Heap* heap = of != nullptr ? of->heap : nullptr;
  if (heap != nullptr && entry != nullptr && in_realm(entry->block)) return walk_to_next(heap, entry);
  LONG status = original<Walk>(Role::walk)(handle, entry);
  if (heap == nullptr || status != kNoMoreEntries) return status;
  entry->block = nullptr;
  return walk_to_next(heap, entry);
}

// Blocks of ours never have user values or flags: who wants them gets a block of the original's. It knows no others. A
// value that is not there is not told: who asks has put there what to go on with.
bool is_originals(const void* block) { return !in_realm(block) && !copies::made(block); }

// Of one that is not the original's. Where it is a block that is no failure to be told of: LocalReAlloc tries it with
// each fixed block that it resized.
ULONG has_none(HANDLE handle, const void* block) { return validate(handle, 0, block) != FALSE ? FALSE : invalid(); }

ULONG NTAPI get_user_info(HANDLE handle, ULONG flags, void* block, void** value, ULONG* user_flags) {
  if (is_originals(block)) return original<GetUserInfo>(Role::get_user_info)(handle, flags, block, value, user_flags);
  if (user_flags != nullptr) *user_flags = 0;
  return validate(handle, 0, block) != FALSE ? TRUE : invalid();
}

ULONG NTAPI set_user_value(HANDLE handle, ULONG flags, void* block, void* value) {
  if (!is_originals(block)) return has_none(handle, block);
  return original<SetUserValue>(Role::set_user_value)(handle, flags, block, value);
}

ULONG NTAPI set_user_flags(HANDLE handle, ULONG flags, void* block, ULONG clear, ULONG set) {
  if (!is_originals(block)) return has_none(handle, block);
  return original<SetUserFlags>(Role::set_user_flags)(handle, flags, block, clear, set);
}

// ---- many at once -------------------------------------------------------------------------------

// Both give how many they did before the first that failed.
ULONG NTAPI multiple_allocate(HANDLE handle, ULONG flags, SIZE_T size, ULONG count, void** blocks) {
  ULONG done = 0;
  while (done < count && (blocks[done] = allocate(handle, flags, size)) != nullptr) ++done;
  return done;
}

ULONG NTAPI multiple_free(HANDLE handle, ULONG flags, ULONG count, void** blocks) {
  ULONG done = 0;
  while (done < count && free(handle, flags, blocks[done]) != FALSE) ++done;
  return done;
}

}  // namespace

const void* replacement(Role role) {
  // In the order of the roles.
  const void* const all[] = {address_of(allocate),       address_of(reallocate),     address_of(free),
                             address_of(size_of),        address_of(create),         address_of(destroy),
                             address_of(validate),       address_of(walk),           address_of(compact),
                             address_of(lock),           address_of(unlock),         address_of(get_user_info),
                             address_of(set_user_value), address_of(set_user_flags), address_of(multiple_allocate),
                             address_of(multiple_free)};
  static_assert(sizeof(all) / sizeof(all[0]) == kRoles);
  return all[static_cast<size_t>(role)];
}

// From the first call on, everything that allocates may be the cause of an allocation: what is needed is made before.
const char* begin(const Originals& originals) {
  void* block = rh::allocate(1);
  if (block == nullptr) return "finds no memory";
  rh::deallocate(block);
  // Setting a word further away allocates.
  if (!platform::thread_words_are_near()) return "has no free slot of thread-local storage";
  g_originals = originals;
  g_process_heap = GetProcessHeap();
  g_unlocked_process_heap.store(g_process_heap, std::memory_order_release);
  return nullptr;
}

}  // namespace rh::heaps
