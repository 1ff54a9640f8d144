// Address space and pages. Committed memory is charged whether it is touched or not, so purged memory is decommitted.
// Not used: MEM_RESET and DiscardVirtualMemory, which would keep the charge; large pages, which cannot be returned in
// parts and need a privilege; and VirtualAlloc2, whose alignment nothing here needs.
#include "base/bits.h"
#include "platform/platform.h"
#include "platform/windows/system.h"

namespace rh::platform {

namespace {

uintptr_t map(uintptr_t address, size_t size) {
  return reinterpret_cast<uintptr_t>(VirtualAlloc(pointer_to(address), size, MEM_RESERVE, PAGE_READWRITE));
}

// How much of [address, address + size) lies in the reservation that address lies in.
size_t within_reservation(uintptr_t address, size_t size) {
  MEMORY_BASIC_INFORMATION first = {}, next = {};
  if (VirtualQuery(pointer_to(address), &first, sizeof(first)) == 0) return 0;
  uintptr_t end = address, most = address + size;
  next = first;
  while (next.AllocationBase == first.AllocationBase && end < most) {
    end = reinterpret_cast<uintptr_t>(next.BaseAddress) + next.RegionSize;
    if (end >= most || VirtualQuery(pointer_to(end), &next, sizeof(next)) == 0) break;
  }
  return end < most ? end - address : size;
}

// Calls that change pages refuse a range of several reservations; then they are made for each.
template <typename Change> bool change_each(uintptr_t address, size_t size, Change change) {
  if (change(address, size)) return true;
  size_t part = within_reservation(address, size);
  if (part == size) return false;  // it failed for another reason
  for (; size != 0; part = within_reservation(address, size)) {
    if (part == 0 || !change(address, part)) return false;
    address += part;
    size -= part;
  }
  return true;
}

bool uncommit(uintptr_t address, size_t size) {
  return change_each(address, size, [](uintptr_t start, size_t length) {
#if defined(_MSC_VER)
#pragma warning(suppress : 6250)  // decommits without releasing on purpose
#endif
    return VirtualFree(pointer_to(start), length, MEM_DECOMMIT) != 0;
  });
}

}  // namespace

Reserve reserve_at(uintptr_t address, size_t size) {
  KeepLastError keep;
  count_os_call(OsCall::reserve);
  uintptr_t got = map(address, size);
  if (got == 0) {
    DWORD error = GetLastError();
    bool placed_elsewhere = error == ERROR_INVALID_ADDRESS || error == ERROR_INVALID_PARAMETER;
    return placed_elsewhere ? Reserve::occupied : Reserve::refused;
  }
  if (got == address) return Reserve::done;
  // Addresses are rounded down to a multiple of kReserveGrain.
  VirtualFree(pointer_to(got), 0, MEM_RELEASE);
  return Reserve::occupied;
}

uintptr_t reserve(size_t size, size_t alignment) {
  KeepLastError keep;
  count_os_call(OsCall::reserve);
  if (alignment <= kReserveGrain) return map(0, size);
  size_t whole = 0;
  if (__builtin_add_overflow(size, alignment - kReserveGrain, &whole)) return 0;
  // Parts of a reservation cannot be released: find one that is large enough, release it, and reserve again where it is
  // aligned. Another thread may be quicker.
  constexpr int kAttempts = 16;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    uintptr_t found = map(0, whole);
    if (found == 0) return 0;
    VirtualFree(pointer_to(found), 0, MEM_RELEASE);
    if (uintptr_t got = map(align_up(found, alignment), size); got != 0) return got;
  }
  return 0;
}

void release(uintptr_t address, size_t size) {
  KeepLastError keep;
  while (size != 0) {
    size_t part = within_reservation(address, size);
    if (part == 0) part = size;  // Wine tells of nothing above 0xc0000000 in 32-bit programs that may use it
    count_os_call(OsCall::release);
    if (!VirtualFree(pointer_to(address), 0, MEM_RELEASE)) return;
    address += part;
    size -= part;
  }
}

bool commit(uintptr_t address, size_t size) {
  KeepLastError keep;
  count_os_call(OsCall::commit);
  bool done = change_each(address, size, [](uintptr_t start, size_t length) {
    return VirtualAlloc(pointer_to(start), length, MEM_COMMIT, PAGE_READWRITE) != nullptr;
  });
  if (!done) uncommit(address, size);
  return done;
}

Purged purge(uintptr_t address, size_t size) {
  KeepLastError keep;
  count_os_call(OsCall::purge);
  return uncommit(address, size) ? Purged::uncommitted : Purged::kept;
}

bool replace_by_zeros(uintptr_t, size_t) { return false; }

bool guard(uintptr_t address, size_t size, GuardPrice) {
  KeepLastError keep;
  count_os_call(OsCall::guard);
  return uncommit(address, size);
}

bool unguard(uintptr_t address, size_t size) { return commit(address, size); }

// Stays committed, for another charge might be refused.
static bool protect(uintptr_t address, size_t size, DWORD protection) {
  KeepLastError keep;
  count_os_call(OsCall::guard);
  return change_each(address, size, [protection](uintptr_t start, size_t length) {
    DWORD before = 0;
    return VirtualProtect(pointer_to(start), length, protection, &before) != 0;
  });
}

bool bar(uintptr_t address, size_t size) { return protect(address, size, PAGE_NOACCESS); }

bool unbar(uintptr_t address, size_t size) { return protect(address, size, PAGE_READWRITE); }

void prefer_huge(uintptr_t, size_t) {}

// Its large pages need a privilege, and are never given back in part.
bool can_prefer_huge() { return false; }

void prefer_small(uintptr_t, size_t) {}

Moved move_pages(uintptr_t, uintptr_t, size_t) { return Moved::refused; }

bool places_freely() { return true; }

bool is_under_thread_sanitizer() { return false; }

}  // namespace rh::platform
