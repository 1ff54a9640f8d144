#include "heap/regions.h"

#include "arena/arena.h"
#include "base/schedule.h"
#include "base/secret.h"

namespace rh::regions {

namespace {

// A place says nothing while its version is odd, and something else when that has changed.
struct Place {
  std::atomic<uint32_t> version{0};
  std::atomic<uint32_t> life{0};  // 0: it is free
  std::atomic<uintptr_t> start{0}, end{0};
  std::atomic<Region*> region{nullptr};
  uint32_t last_life = 0;
};

constexpr unsigned kIndexBits = 10, kPageBits = std::countr_zero(platform::kPageSize);
static_assert(kMost == 1u << kIndexBits);
constexpr uint32_t kMostLife = k64Bit ? UINT32_MAX : (1u << (32 - kIndexBits - kPageBits)) - 1;

RH_RARE_ZEROS constinit Place g_places[kMost] = {};
constinit std::atomic<unsigned> g_count{0};  // of places that were ever used
constinit Lock g_lock{LockRank::registry};

// What a signed displacement of 32 bits reaches.
constexpr uint64_t kReach = uint64_t{1} << 31;

// Programs leave what lies below to nobody.
constexpr uintptr_t kLowest = kMiB;

unsigned count() { return g_count.load(std::memory_order_acquire); }

Region* live(const Place& place) {
  return place.life.load(std::memory_order_acquire) != 0 ? place.region.load(std::memory_order_acquire) : nullptr;
}

// The caller holds g_lock, as for the next three.
template <typename Visit> void visit_each(Visit visit) {
  for (unsigned index = 0, end = count(); index < end; ++index)
    if (Region* region = live(g_places[index])) visit(region);
}

bool overlaps_any(uintptr_t start, uintptr_t end) {
  bool overlaps = false;
  visit_each([&](Region* other) { overlaps |= start < other->base() + other->size() && other->base() < end; });
  return overlaps;
}

Place* free_place() {
  for (unsigned index = 0, end = count(); index < end; ++index)
    if (g_places[index].life.load(std::memory_order_relaxed) == 0) return &g_places[index];
  return count() < kMost ? &g_places[count()] : nullptr;
}

// Who reads a new value of what comes between sees that the version is another.
void set(Place* place, uint32_t life, Region* region, uintptr_t start, uintptr_t end) {
  const uint32_t version = place->version.load(std::memory_order_relaxed) | 1;
  place->version.store(version, std::memory_order_relaxed);
  place->life.store(0, std::memory_order_release);
  schedule_point();
  place->start.store(start, std::memory_order_release);
  schedule_point();
  place->end.store(end, std::memory_order_release);
  schedule_point();
  place->region.store(region, std::memory_order_release);
  place->life.store(life, std::memory_order_release);
  place->version.store(version + 1, std::memory_order_release);
}

uint64_t key_for(uintptr_t base, uint32_t life) { return mix(secret(Secret::regions) ^ base) + mix(life); }

Made enter(Region::Kind kind, uintptr_t base, size_t size, size_t committed) {
  LockGuard guard(g_lock);
  if (inconsistent()) return {nullptr, Failure::memory};
  if (overlaps_any(base, base + size)) return {nullptr, Failure::invalid};
  Place* place = free_place();
  if (place == nullptr) return {nullptr, Failure::memory};
  const unsigned index = static_cast<unsigned>(place - g_places);
  place->last_life = place->last_life % kMostLife + 1;
  Region* region = Region::lay(kind, base, size, committed, key_for(base, place->last_life));
  region->handle = (uintptr_t{place->last_life} << kIndexBits | index) << kPageBits;
  set(place, place->last_life, region, base, base + size);
  if (index == count()) g_count.store(index + 1, std::memory_order_release);
  return {region, Failure::none};
}

// ---- near a program's code ----------------------------------------------------------------------

bool is_reserved(uint64_t at, size_t size) {
  return platform::reserve_at(static_cast<uintptr_t>(at), size) == platform::Reserve::done;
}

// Address space of `size` bytes at a multiple of `step`, as near to `code` as can be had; 0 when there is none.
uintptr_t reserve_in_steps(uintptr_t code, size_t size, size_t step) {
  const uint64_t lowest = code > kReach + kLowest ? code - kReach : kLowest;
  const uint64_t highest = UINTPTR_MAX - code < kReach ? UINTPTR_MAX : uint64_t{code} + kReach;
  uint64_t below = code > size ? align_down(code - size, step) : 0, above = align_down(code, step) + uint64_t{step};
  for (;;) {
    const bool fits_below = below >= lowest, fits_above = above + size <= highest;
    if (!fits_below && !fits_above) return 0;
    if (fits_below && is_reserved(below, size)) return static_cast<uintptr_t>(below);
    if (fits_above && is_reserved(above, size)) return static_cast<uintptr_t>(above);
    below = below > step ? below - step : 0;
    above += step;
  }
}

uintptr_t reserve_near(uintptr_t code, size_t size) {
  if constexpr (!k64Bit) return platform::reserve(size, platform::reserve_grain());  // all of it is within reach
  constexpr size_t kWide = 16 * kMiB;
  const uintptr_t at = reserve_in_steps(code, size, kWide);
  return at != 0 ? at : reserve_in_steps(code, size, kMiB);
}

// Gives how much is committed of it; 0: nothing could be.
size_t commit_first(uintptr_t base, size_t size) {
  const size_t least = align_up(Region::least_of(base, size), platform::page_size());
  if (!g_arena.take_near(least)) return 0;
  if (platform::commit(base, least)) return least;
  g_arena.give_near(least);
  return 0;
}

}  // namespace

Made make_in(void* memory, size_t size) {
  const uintptr_t base = address_of(memory);
  const bool possible = base != 0 && size <= UINTPTR_MAX - base && uint64_t{size} <= Region::kMostBytes;
  if (!possible || Region::least_of(base, size) == 0) return {nullptr, Failure::invalid};
  if (g_realm.overlaps(base, base + size)) return {nullptr, Failure::invalid};
  return enter(Region::Kind::lent, base, size, size);
}

Made make_near(const void* code, size_t size) {
  if (code == nullptr || size == 0 || size > kReach) return {nullptr, Failure::invalid};
  size = align_up(size, platform::reserve_grain());
  if (Region::least_of(0, size) == 0) return {nullptr, Failure::invalid};
  const uintptr_t base = reserve_near(address_of(code), size);
  if (base == 0) return {nullptr, Failure::memory};
  const size_t committed = commit_first(base, size);
  if (committed != 0) {
    const Made made = enter(Region::Kind::reserved, base, size, committed);
    if (made.region != nullptr) return made;
    g_arena.give_near(committed);
  }
  platform::release(base, size);
  return {nullptr, Failure::memory};
}

void destroy(Region* region) {
  const bool is_near = region->kind() == Region::Kind::reserved;
  const uintptr_t base = region->base();
  const size_t size = region->size();
  {
    LockGuard guard(g_lock);
    set(&g_places[region->handle >> kPageBits & (kMost - 1)], 0, nullptr, 0, 0);
  }
  if (!is_near || inconsistent()) return;
  region->give_up_charge();
  platform::release(base, size);
}

Region* find(const void* pointer) {
  const uintptr_t address = address_of(pointer);
  for (unsigned index = 0, end = count(); index < end; ++index) {
    const Place& place = g_places[index];
    const uint32_t version = place.version.load(std::memory_order_acquire);
    schedule_point();
    const uintptr_t start = place.start.load(std::memory_order_acquire);
    schedule_point();
    if (RH_LIKELY(address - start >= place.end.load(std::memory_order_acquire) - start)) continue;
    Region* region = place.region.load(std::memory_order_acquire);
    schedule_point();
    // What it said when it changed is nobody's who may be asking.
    if (version % 2 == 0 && place.version.load(std::memory_order_relaxed) == version) return region;
  }
  return nullptr;
}

Region* of_handle(uintptr_t handle) {
  const uintptr_t life = handle >> (kPageBits + kIndexBits);
  const Place& place = g_places[handle >> kPageBits & (kMost - 1)];
  const bool is_one = handle % platform::kPageSize == 0 && life != 0;
  if (!is_one || place.life.load(std::memory_order_acquire) != life) return nullptr;
  return place.region.load(std::memory_order_acquire);
}

size_t trim() {
  size_t bytes = 0;
  // Who forks waits for the lock, which is held for one.
  for (unsigned index = 0, end = count(); index < end; ++index) {
    LockGuard guard(g_lock);
    if (Region* region = live(g_places[index])) bytes += region->trim();
  }
  return bytes;
}

Figures figures() {
  Figures all;
  if (count() == 0) return all;
  LockGuard guard(g_lock);
  visit_each([&all](Region* region) {
    all.count += 1;
    all.held += region->account().held();
    if (region->kind() != Region::Kind::reserved) return;
    all.reserved += region->size();
    all.committed += region->figures().committed;
  });
  return all;
}

// ---- forks, and threads that were terminated ----------------------------------------------------

namespace {

bool hold(Lock& lock, ThreadToken token, uint64_t patience_ms) {
  return lock.held_by(token) || lock.acquire_within(patience_ms, kForkToken);
}

void release_lock(Lock& lock, ThreadToken token) {
  if (!lock.held_by(token)) lock.release();
}

}  // namespace

// Without the lock of all nobody may look at one: each may be about to go.
void before_fork(ThreadToken token, uint64_t patience_ms) {
  if (!hold(g_lock, token, patience_ms)) return;
  visit_each([=](Region* region) { region->held_by_fork = hold(region->lock(), token, patience_ms); });
}

void after_fork_in_parent(ThreadToken token) {
  if (!g_lock.held_by(kForkToken) && !g_lock.held_by(token)) return;
  visit_each([](Region* region) { region->lock().release_after_fork(); });
  g_lock.release_after_fork();
}

// What this thread was interrupted in it goes on with here.
void after_fork_in_child(ThreadToken token, bool taken) {
  const bool sure = !taken && (g_lock.held_by(kForkToken) || g_lock.held_by(token));
  visit_each([=](Region* region) {
    const bool own = region->lock().held_by(token);
    if (!own && !(sure && region->held_by_fork)) region->recover();
    release_lock(region->lock(), token);
  });
  release_lock(g_lock, token);
}

bool put_in_order(Lock& lock) {
  if (&lock == &g_lock) return true;
  for (unsigned index = 0, end = count(); index < end; ++index) {
    Region* region = live(g_places[index]);
    if (region == nullptr || &region->lock() != &lock) continue;
    region->recover();
    return true;
  }
  return false;
}

}  // namespace rh::regions
