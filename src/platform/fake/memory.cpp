// Address space and pages, recorded in a ledger.
#include <stdlib.h>

#include <atomic>

#include "base/bits.h"
#include "base/config.h"
#include "base/sanitizers.h"
#include "platform/fake/fake.h"
#include "platform/fake/ledger.h"
#include "platform/fake/state.h"
#include "platform/fake/system.h"
#include "platform/platform.h"

namespace rh::fake {

namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

// Where a 64-bit realm asks for its table and itself. ThreadSanitizer allows no such address.
constexpr bool kChosenPlace = k64Bit && !RH_SHADOW_SANITIZER;
constexpr uintptr_t at_gib(uint64_t gib) { return kChosenPlace ? static_cast<uintptr_t>(gib * kGiB) : 0; }
constexpr uintptr_t kTable = at_gib(16384);
constexpr uintptr_t kNotes = kTable + at_gib(256 + 16);
constexpr uintptr_t kPlace = kNotes + at_gib((kExactSizes ? 4096 : 0) + 8);
// RH_FAKE_SPACE_GIB: less of it, where each page of a mapping is work, as to QEMU.
#if !defined(RH_FAKE_SPACE_GIB)
#define RH_FAKE_SPACE_GIB 64
#endif
constexpr size_t kSpace = static_cast<size_t>(kChosenPlace ? RH_FAKE_SPACE_GIB * kGiB : k64Bit ? 20 * kGiB : kGiB);

constinit pthread_mutex_t g_memory_mutex = PTHREAD_MUTEX_INITIALIZER;
constinit Ranges g_spaces, g_reserved, g_committed, g_locked, g_huge;
constinit Range g_default;
constinit std::atomic<size_t> g_page_size{0};
constinit size_t g_committed_most = SIZE_MAX, g_reserved_most = SIZE_MAX;
constinit bool g_freely = kChosenPlace;
constinit uintptr_t g_address_end = UINTPTR_MAX;
constinit platform::Reserve g_beyond_end = platform::Reserve::refused;
using Hook = void (*)();
constinit Hook g_purge_hook = nullptr, g_memory_hook = nullptr;
constinit bool g_purge_uncommits = false;
constinit bool g_loses_targets = false;
constinit bool g_has_huge = true;

void memory_call(platform::OsCall kind) {
  platform::count_os_call(kind);
  if (g_memory_hook != nullptr) g_memory_hook();
}

void open_space(const char* without, uintptr_t start, size_t size) {
  Range range = {start, start + size};
  if (!system::take(&range)) broken(without, start, size);
  g_spaces.add(range);
}

void open_default_space() {
  if (g_default.size() != 0) return;
  g_default = {kPlace, kPlace + kSpace};
  if (!system::take(&g_default)) broken("the system has no room for the default space", kPlace, kSpace);
  g_spaces.add(g_default);
  if (!kChosenPlace) return;
  open_space("the system has no room for the table", kTable, kSpace / kUnitSize * 64);
  if (kExactSizes) open_space("the system has no room for the notes", kNotes, kSpace / kBlockAlign);
}

bool limits_allow(const Ranges& ranges, size_t more, size_t most) {
  return more <= most && ranges.bytes() <= most - more;
}

// The content is lost.
void uncommit(Range range) {
  g_committed.remove(range);
  g_locked.remove(range);
  if (!system::close(range)) broken("the system would not replace a mapping", range.start, range.size());
}

// The highest place for it in a space, 0 when there is none: systems fill their address space from above too.
uintptr_t find_place(Range space, size_t size, size_t alignment) {
  uintptr_t end = space.end;
  while (end - space.start >= size) {
    Range place = {align_down(end - size, alignment), 0};
    place.end = place.start + size;
    if (place.start < space.start) return 0;
    if (!g_reserved.overlaps(place)) return place.start;
    end = g_reserved[g_reserved.first_behind(place.start)].start;
  }
  return 0;
}

}  // namespace

bool add_space(uintptr_t address, size_t size) {
  Range range = checked_range("a space is whole pages", address, size);
  Guard guard(g_memory_mutex);
  if (!system::take(&range)) return false;
  g_spaces.add(range);
  return true;
}

void set_page_size(size_t bytes) {
  if (g_reserved.count() != 0) broken("the length of pages changes under what is reserved", 0, bytes);
  g_page_size.store(bytes);
}

uintptr_t table_start() { return kTable; }

uintptr_t space_start() {
  Guard guard(g_memory_mutex);
  open_default_space();
  return g_default.start;
}

void occupy(uintptr_t address, size_t size) {
  Range range = checked_range("what is occupied is whole pages", address, size);
  Guard guard(g_memory_mutex);
  g_reserved.add(range);
}

void end_address_space(uintptr_t end, platform::Reserve answer) {
  g_address_end = end;
  g_beyond_end = answer;
}

void limit_committed(size_t bytes) { g_committed_most = bytes; }
void limit_reserved(size_t bytes) { g_reserved_most = bytes; }

size_t committed_bytes() {
  Guard guard(g_memory_mutex);
  return g_committed.bytes();
}

size_t reserved_bytes() {
  Guard guard(g_memory_mutex);
  return g_reserved.bytes();
}

bool is_committed(uintptr_t address, size_t size) {
  Guard guard(g_memory_mutex);
  return g_committed.covers({address, address + size});
}

void set_has_huge(bool has) { g_has_huge = has; }

size_t huge_bytes() {
  Guard guard(g_memory_mutex);
  return g_huge.bytes();
}

void lock_pages(uintptr_t address, size_t size) {
  Range range = checked_range("what is locked is whole pages", address, size);
  Guard guard(g_memory_mutex);
  if (!g_committed.covers(range)) broken("lock of what is not committed", address, size);
  g_locked.add_merged(range);
}

void unlock_pages(uintptr_t address, size_t size) {
  Guard guard(g_memory_mutex);
  g_locked.remove({address, address + size});
}

void on_purge(void (*hook)()) { g_purge_hook = hook; }
void on_memory_call(void (*hook)()) { g_memory_hook = hook; }
void set_purge_uncommits(bool uncommits) { g_purge_uncommits = uncommits; }
void set_failed_moves_lose(bool lose) { g_loses_targets = lose; }
void set_places_freely(bool freely) { g_freely = freely; }

}  // namespace rh::fake

namespace rh::platform {

using namespace fake;

size_t page_size() {
  size_t size = g_page_size.load(std::memory_order_relaxed);
  if (size != 0) return size;
  const char* kib = getenv("FAKE_PAGE_KIB");
  size = kib != nullptr ? static_cast<size_t>(atoi(kib)) * 1024 : kPageSize;
  g_page_size.store(size, std::memory_order_relaxed);
  return size;
}

Reserve reserve_at(uintptr_t address, size_t size) {
  memory_call(OsCall::reserve);
  Range range = checked_range("reserve_at of what is not whole pages", address, size);
  Guard guard(g_memory_mutex);
  open_default_space();
  if (fails(Call::reserve) || !limits_allow(g_reserved, size, g_reserved_most)) return Reserve::refused;
  if (range.end > g_address_end) return g_beyond_end;
  if (!g_spaces.covers(range) || g_reserved.overlaps(range)) return Reserve::occupied;
  g_reserved.add(range);
  return Reserve::done;
}

uintptr_t reserve(size_t size, size_t alignment) {
  memory_call(OsCall::reserve);
  checked_range("reserve of what is not whole pages", 0, size);
  if (alignment < page_size()) alignment = page_size();
  if (!is_power_of_two(alignment)) broken("reserve with an alignment that is no power of two", alignment, size);
  Guard guard(g_memory_mutex);
  open_default_space();
  if (fails(Call::reserve) || !limits_allow(g_reserved, size, g_reserved_most)) return 0;
  uintptr_t place = find_place(g_default, size, alignment);
  if (place != 0) g_reserved.add({place, place + size});
  return place;
}

void release(uintptr_t address, size_t size) {
  memory_call(OsCall::release);
  Range range = checked_range("release of what is not whole pages", address, size);
  Guard guard(g_memory_mutex);
  if (!g_reserved.remove_exact(range)) broken("release of what is no whole reservation", address, size);
  uncommit(range);
}

bool commit(uintptr_t address, size_t size) {
  memory_call(OsCall::commit);
  Range range = checked_range("commit of what is not whole pages", address, size);
  Guard guard(g_memory_mutex);
  if (!g_reserved.covers(range)) broken("commit of what is not reserved", address, size);
  if (fails(Call::commit) || !limits_allow(g_committed, size, g_committed_most)) {
    // Kernels work mapping by mapping, and stop where they fail.
    system::open({range.start, range.start + align_up(size / 2, page_size())});
    return false;
  }
  if (!system::open(range)) return false;
  g_committed.add_merged(range);
  return true;
}

namespace {

void check_committed(const char* what, uintptr_t address, size_t size) {
  Range range = checked_range(what, address, size);
  Guard guard(g_memory_mutex);
  if (!g_committed.covers(range)) broken(what, address, size);
}

// Changes the content: after a failed purge it is undefined.
void spoil(uintptr_t address, size_t size) {
  for (uintptr_t page = address; page < address + size; page += kPageSize) __builtin_memset(pointer_to(page), 0xdb, 64);
}

// Mapping by mapping, as kernels do: false at the first that is locked.
bool clear_to_locked(Range range) {
  Guard guard(g_memory_mutex);
  size_t locked = g_locked.first_behind(range.start);
  if (locked == g_locked.count() || g_locked[locked].start >= range.end) return system::clear(range);
  if (range.start < g_locked[locked].start) system::clear({range.start, g_locked[locked].start});
  return false;
}

}  // namespace

Purged purge(uintptr_t address, size_t size) {
  memory_call(OsCall::purge);
  check_committed("purge of what is not committed", address, size);
  if (g_purge_hook != nullptr) g_purge_hook();
  if (fails(Call::purge)) {
    spoil(address, size);
    return Purged::kept;
  }
  Range range = {address, address + size};
  if (!g_purge_uncommits) return clear_to_locked(range) ? Purged::zero : Purged::kept;
  Guard guard(g_memory_mutex);
  uncommit(range);
  return Purged::uncommitted;
}

bool replace_by_zeros(uintptr_t address, size_t size) {
  memory_call(OsCall::purge);
  check_committed("zeroing of what is not committed", address, size);
  if (!g_purge_uncommits && !fails(Call::purge)) return clear_to_locked({address, address + size});
  spoil(address, size);
  return false;
}

bool guard(uintptr_t address, size_t size, GuardPrice) {
  memory_call(OsCall::guard);
  check_committed("guard of what is not committed", address, size);
  if (fails(Call::guard)) return false;
  Guard hold(g_memory_mutex);
  return system::clear({address, address + size}) && system::close({address, address + size});
}

bool unguard(uintptr_t address, size_t size) {
  memory_call(OsCall::guard);
  check_committed("end of a guard that is not committed", address, size);
  if (fails(Call::unguard)) return false;
  Guard hold(g_memory_mutex);
  return system::open({address, address + size});
}

bool bar(uintptr_t address, size_t size) { return guard(address, size, GuardPrice::free_only); }

bool unbar(uintptr_t address, size_t size) { return unguard(address, size); }

void prefer_huge(uintptr_t address, size_t size) {
  memory_call(OsCall::commit);
  check_committed("huge pages for what is not committed", address, size);
  Guard guard(g_memory_mutex);
  g_huge.add_merged({address, address + size});
}

bool can_prefer_huge() { return g_has_huge; }

void prefer_small(uintptr_t address, size_t size) {
  memory_call(OsCall::commit);
  Guard guard(g_memory_mutex);
  g_huge.remove({address, address + size});
}

Moved move_pages(uintptr_t from, uintptr_t to, size_t size) {
  count_os_call(OsCall::move);
  check_committed("move of what is not committed", from, size);
  check_committed("move to what is not committed", to, size);
  if (from < to + size && to < from + size) broken("move onto itself", from, size);
  if (fails(Call::move)) {
    if (!g_loses_targets) return Moved::refused;
    Guard guard(g_memory_mutex);
    uncommit({to, to + size});
    return Moved::lost;
  }
  __builtin_memcpy(pointer_to(to), pointer_to(from), size);
  spoil(from, size);
  return Moved::done;
}

bool renew(uintptr_t address, size_t size) {
  Range range = checked_range("renewal of what is not whole pages", address, size);
  Guard guard(g_memory_mutex);
  if (!g_spaces.covers(range)) broken("renewal outside the spaces", address, size);
  g_committed.remove(range);
  g_locked.remove(range);
  if (!g_reserved.covers(range)) g_reserved.add_merged(range);
  return system::close(range);
}

bool places_freely() { return g_freely; }

bool is_under_thread_sanitizer() { return false; }

}  // namespace rh::platform
