// Address space and pages.
#include <errno.h>
#include <linux/mman.h>
#include <sys/mman.h>

#include <atomic>

#include "base/sanitizers.h"
#include "platform/linux/strict.h"
#include "platform/linux/syscall.h"
#include "platform/memory_tags.h"
#include "platform/platform.h"

// Its runtime's, of GCC's kind and of Clang's.
extern "C" [[gnu::weak]] void __tsan_init();

namespace rh::platform {

namespace {

long map(uintptr_t address, size_t size, int protection, int flags) {
#if defined(__i386__)
  // The old form takes its six arguments from memory.
  struct {
    unsigned long address, size, protection, flags, fd, offset;
  } arguments = {address,
                 size,
                 static_cast<unsigned long>(protection),
                 static_cast<unsigned long>(flags),
                 static_cast<unsigned long>(-1),
                 0};
  return system_call(SYS_mmap, reinterpret_cast<long>(&arguments));
#else
  return system_call(SYS_mmap, static_cast<long>(address), static_cast<long>(size), protection, flags, -1, 0);
#endif
}

// How memory in use may be accessed.
int usable() {
  constexpr int kTagged = 0x20;  // PROT_MTE, of 64-bit ARM
  return PROT_READ | PROT_WRITE | (has_tags() ? kTagged : 0);
}

constexpr int kReserveFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

void unmap(uintptr_t address, size_t size) {
  system_call(SYS_munmap, static_cast<long>(address), static_cast<long>(size));
}

}  // namespace

Reserve reserve_at(uintptr_t address, size_t size) {
  count_os_call(OsCall::reserve);
  long result = map(address, size, PROT_NONE, kReserveFlags | MAP_FIXED_NOREPLACE);
  if (result == -EEXIST) return Reserve::occupied;
  if (is_error(result)) return Reserve::refused;
  if (static_cast<uintptr_t>(result) == address) return Reserve::done;
  // Kernels before 4.17 treat the flag as a hint.
  unmap(static_cast<uintptr_t>(result), size);
  return Reserve::occupied;
}

uintptr_t reserve(size_t size, size_t alignment) {
  count_os_call(OsCall::reserve);
  size_t slack = alignment > page_size() ? alignment - page_size() : 0;
  size_t whole = 0;
  if (__builtin_add_overflow(size, slack, &whole)) return 0;
  long result = map(0, whole, PROT_NONE, kReserveFlags);
  if (is_error(result)) return 0;
  uintptr_t start = static_cast<uintptr_t>(result);
  uintptr_t aligned = (start + slack) & ~(static_cast<uintptr_t>(alignment) - 1);
  if (slack == 0) return start;
  if (aligned != start) unmap(start, aligned - start);
  if (size_t tail = start + whole - aligned - size; tail != 0) unmap(aligned + size, tail);
  return aligned;
}

void release(uintptr_t address, size_t size) {
  count_os_call(OsCall::release);
  unmap(address, size);
}

bool commit(uintptr_t address, size_t size) {
  count_os_call(OsCall::commit);
  return !is_error(system_call(SYS_mprotect, static_cast<long>(address), static_cast<long>(size), usable()));
}

static constinit std::atomic<bool> g_gives_nothing_back{false};

void give_nothing_back() { g_gives_nothing_back.store(true, std::memory_order_relaxed); }

// Fails on pages locked in memory: they stay, with their content.
bool replace_by_zeros(uintptr_t address, size_t size) {
  if (g_gives_nothing_back.load(std::memory_order_relaxed)) return false;
  count_os_call(OsCall::purge);
  return !is_error(system_call(SYS_madvise, static_cast<long>(address), static_cast<long>(size), MADV_DONTNEED));
}

namespace {

// Since Linux 6.13: marks in the page table, which split no mapping.
constexpr long kInstallGuard = 102, kRemoveGuard = 103;

constexpr long kNoAdvice = 9999;

// Some ranges are guarded by marks, or by their protection.
constinit std::atomic<bool> g_marks{false}, g_protects{false};

bool advise(uintptr_t address, size_t size, long advice) {
  return !is_error(system_call(SYS_madvise, static_cast<long>(address), static_cast<long>(size), advice));
}

// Who says yes to advice that does not exist says yes to everything: QEMU, which heeds some of it, not all.
bool says_always_yes(uintptr_t address) {
  enum : int { kUnknown, kNo, kYes };
  static constinit std::atomic<int> kernel{kUnknown};
  int known = kernel.load(std::memory_order_relaxed);
  if (known == kUnknown) {
    known = advise(address, page_size(), kNoAdvice) ? kYes : kNo;
    kernel.store(known, std::memory_order_relaxed);
  }
  return known == kYes;
}

bool protect(uintptr_t address, size_t size, int protection) {
  return !is_error(system_call(SYS_mprotect, static_cast<long>(address), static_cast<long>(size), protection));
}

}  // namespace

void prefer_huge(uintptr_t address, size_t size) {
  count_os_call(OsCall::commit);
  advise(address, size, MADV_HUGEPAGE);
}

bool can_prefer_huge() {
  const uintptr_t page = reserve(page_size(), page_size());
  if (page == 0) return false;
  const bool can = advise(page, page_size(), MADV_HUGEPAGE);
  release(page, page_size());
  return can;
}

void prefer_small(uintptr_t address, size_t size) {
  if (g_gives_nothing_back.load(std::memory_order_relaxed)) return;
  count_os_call(OsCall::commit);
  advise(address, size, MADV_NOHUGEPAGE);
}

// Where the kernel does not replace pages by zeros: because they are locked in memory, or in a sandbox. Some may be
// inaccessible.
static bool clear(uintptr_t address, size_t size) {
  if (!unguard(address, size)) return false;
  __builtin_memset(reinterpret_cast<void*>(address), 0, size);
  return true;
}

// Kernels that know no marks refuse them, and some do so for pages locked in memory.
bool guard(uintptr_t address, size_t size, GuardPrice price) {
  enum : int { kUnknown, kMarks, kNoMarks };
  static constinit std::atomic<int> kernel{kUnknown};
  count_os_call(OsCall::guard);
  int known = kernel.load(std::memory_order_relaxed);
  bool marked = known != kNoMarks && !says_always_yes(address) && advise(address, size, kInstallGuard);
  if (known == kUnknown) kernel.store(marked ? kMarks : kNoMarks, std::memory_order_relaxed);
  if (marked) {
    g_marks.store(true, std::memory_order_relaxed);
    return true;
  }
  if (price == GuardPrice::free_only) {
    if (known == kMarks) advise(address, size, kRemoveGuard);
    return false;
  }
  g_protects.store(true, std::memory_order_relaxed);
  if (!advise(address, size, MADV_DONTNEED) && !clear(address, size)) return false;
  return protect(address, size, PROT_NONE);
}

bool unguard(uintptr_t address, size_t size) {
  count_os_call(OsCall::guard);
  bool marked = advise(address, size, kRemoveGuard);
  // A sandbox that was closed since may refuse that: then other pages take their place.
  if (!marked && g_marks.load(std::memory_order_relaxed))
    return !is_error(map(address, size, usable(), kReserveFlags | MAP_FIXED));
  if (!g_protects.load(std::memory_order_relaxed)) return marked;
  return protect(address, size, usable());
}

bool bar(uintptr_t address, size_t size) { return guard(address, size, GuardPrice::free_only); }

bool unbar(uintptr_t address, size_t size) { return unguard(address, size); }

Purged purge(uintptr_t address, size_t size) { return replace_by_zeros(address, size) ? Purged::zero : Purged::kept; }

namespace {

// Shorter pieces are copied.
constexpr size_t kLeastMoved = 256 * 1024;

long remap(uintptr_t from, size_t size, int flags, uintptr_t to) {
  count_os_call(OsCall::move);
  return system_call(SYS_mremap, static_cast<long>(from), static_cast<long>(size), static_cast<long>(size), flags,
                     static_cast<long>(to));
}

// Moves to a place the kernel chooses. This call fails without side effects, for it has no target to clear. 0 when
// refused. Most kernels refuse a range of several mappings (EFAULT): then the longest beginning within one mapping is
// moved.
uintptr_t detach(uintptr_t from, size_t* size) {
  for (;; *size = (*size / 2) & ~(page_size() - 1)) {
    long result = remap(from, *size, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
    if (!is_error(result)) return static_cast<uintptr_t>(result);
    if (result != -EFAULT || *size / 2 < kLeastMoved) return 0;
  }
}

void copy(uintptr_t from, uintptr_t to, size_t size) {
  __builtin_memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), size);
}

// Moves detached pages to their destination. The kernel unmaps what was there before it tries, and leaves it unmapped
// when it fails: then it is mapped again and the content copied.
bool attach(uintptr_t detached, uintptr_t to, size_t size) {
  if (!is_error(remap(detached, size, MREMAP_MAYMOVE | MREMAP_FIXED, to))) return true;
  if (is_error(map(to, size, usable(), kReserveFlags | MAP_FIXED))) return false;
  copy(detached, to, size);
  unmap(detached, size);
  return true;
}

}  // namespace

// QEMU replaces no page by zeros any more where pages were moved away, and says that it did.
Moved move_pages(uintptr_t from, uintptr_t to, size_t size) {
  if (says_always_yes(from)) return Moved::refused;
  for (size_t at = 0; at < size;) {
    size_t length = size - at;
    uintptr_t detached = detach(from + at, &length);
    if (detached == 0 && at == 0) return Moved::refused;
    if (detached == 0) {
      copy(from + at, to + at, length);
    } else if (!attach(detached, to + at, length)) {
      copy(detached, from + at, length);
      unmap(detached, length);
      copy(to, from, at);
      return Moved::lost;
    }
    at += length;
  }
  return Moved::done;
}

bool renew(uintptr_t address, size_t size) {
  count_os_call(OsCall::reserve);
  return !is_error(map(address, size, PROT_NONE, kReserveFlags | MAP_FIXED));
}

std::atomic<uint32_t>* make_shared_counter() {
  count_os_call(OsCall::reserve);
  long result = map(0, kPageSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
  return is_error(result) ? nullptr : reinterpret_cast<std::atomic<uint32_t>*>(result);
}

// Sanitizers keep most of the address space for their shadow.
bool places_freely() { return !RH_SHADOW_SANITIZER && !is_under_thread_sanitizer(); }

#if defined(RH_COHERENCE)  // whose runtime only goes by those names
bool is_under_thread_sanitizer() { return false; }
#else
bool is_under_thread_sanitizer() { return &__tsan_init != nullptr; }
#endif

}  // namespace rh::platform
