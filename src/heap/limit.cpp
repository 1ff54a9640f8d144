#include "heap/limit.h"

#include <atomic>

#include "platform/report.h"

namespace rh::limit {

namespace {

constexpr size_t kUnlimited = Arena::kUnlimited;

// The arena's lock guards what was set. Each new rule has a number, so that what was read for an older one is not
// applied.
constinit Rule g_rule = {};
constinit uint32_t g_number = 0, g_applied = 0;

constinit std::atomic<bool> g_follows{false};  // limits that the OS may change
constinit std::atomic<bool> g_frozen{false};   // but it is not to be asked any more
constinit std::atomic<uint64_t> g_read_at{0};

constinit std::atomic<size_t> g_soft_met{0}, g_hard_met{0};

// What the OS says is read again after so long where there is time; and when memory is refused.
constexpr uint64_t kBetweenLooksMs = 1000, kBetweenRefusalsMs = 100;

size_t bytes_of(uint64_t bytes) { return bytes < kUnlimited ? static_cast<size_t>(bytes) : kUnlimited; }

// What others and the kernel take until the OS is asked again; stacks and mapped files too.
uint64_t headroom(uint64_t least) {
  constexpr uint64_t kShare = 16, kMost = uint64_t{256} << 20;
  return least / kShare < kMost ? least / kShare : kMost;
}

size_t resolve(const Bound& bound, const platform::Grant& grant) {
  switch (bound.kind) {
  case Bound::Kind::none: return kUnlimited;
  case Bound::Kind::bytes: return bytes_of(bound.value);
  case Bound::Kind::percent: break;
  }
  uint64_t machine = platform::machine_memory();
  uint64_t base = machine != 0 && machine < grant.least ? machine : grant.least;
  return base == platform::Grant::kUnlimited ? kUnlimited : bytes_of(base / 100 * bound.value);
}

Arena::Limit automatic_limit(const platform::Grant& grant) {
  constexpr size_t kSoftShare = 8;
  if (grant.least == platform::Grant::kUnlimited) return {};
  uint64_t spare = headroom(grant.least);
  auto without = [spare](uint64_t bytes) {
    if (bytes == platform::Grant::kUnlimited) return kUnlimited;
    return bytes_of(bytes > spare + kLeast ? bytes - spare : kLeast);
  };
  Arena::Limit limit = {without(grant.soft), without(grant.hard)};
  size_t below_hard = limit.hard - limit.hard / kSoftShare;
  if (limit.hard != kUnlimited && below_hard < limit.soft) limit.soft = below_hard;
  return limit;
}

bool depends_on_os(const Rule& rule) {
  return rule.automatic || rule.soft.kind == Bound::Kind::percent || rule.hard.kind == Bound::Kind::percent;
}

bool is_due(uint64_t between_ms) {
  return platform::now_ms() >= g_read_at.load(std::memory_order_relaxed) + between_ms;
}

}  // namespace

bool follows() { return g_follows.load(std::memory_order_relaxed) && !g_frozen.load(std::memory_order_relaxed); }

// Applies what was set, and what the OS says now. True when the limits are others than before.
bool renew(platform::ThreadToken token) {
  Rule now;
  uint32_t number = 0;
  bool is_applied = false;
  {
    LockGuard guard(g_arena.lock(), token);
    now = g_rule;
    number = g_number;
    is_applied = g_applied == g_number;
  }
  platform::Grant grant;
  if (depends_on_os(now)) {
    g_read_at.store(platform::now_ms(), std::memory_order_relaxed);
    grant = platform::read_grant(g_arena.standing(token).held);
    if (!grant.known && is_applied) return false;
  }
  Arena::Limit limit = automatic_limit(grant);
  if (!now.automatic) limit = {resolve(now.soft, grant), resolve(now.hard, grant)};
  LockGuard guard(g_arena.lock(), token);
  if (number != g_number) return false;
  g_applied = number;
  if (limit == g_arena.limit()) return false;
  g_arena.set_limit(limit);
  g_arena.watch(0, 0);  // relief::answer() sees what follows from it
  return true;
}

void set(const Rule& rule) {
  platform::ThreadToken token = platform::thread_token();
  {
    LockGuard guard(g_arena.lock(), token);
    g_rule = rule;
    ++g_number;
    g_follows.store(depends_on_os(rule), std::memory_order_relaxed);
  }
  renew(token);
  g_limit_calls.store(true, std::memory_order_relaxed);
}

Rule rule() {
  LockGuard guard(g_arena.lock());
  return g_rule;
}

Figures figures() {
  return {g_arena.standing(), g_soft_met.load(std::memory_order_relaxed), g_hard_met.load(std::memory_order_relaxed)};
}

void note_crossed() { g_soft_met.fetch_add(1, std::memory_order_relaxed); }

bool has_risen() {
  if (!follows() || inconsistent() || !is_due(kBetweenRefusalsMs)) return false;
  platform::ThreadToken token = platform::thread_token();
  size_t before = g_arena.standing(token).limit.hard;
  return renew(token) && g_arena.standing(token).limit.hard > before;
}

bool is_hard() { return !inconsistent() && g_arena.standing().limit.hard != kUnlimited; }

RH_COLD void note_refused(size_t size) {
  g_hard_met.fetch_add(1, std::memory_order_relaxed);
  if (!rule().ends) return;
  Arena::Standing now = g_arena.standing();
  Text message;
  message << "out of memory: ";
  message.decimal(size) << " bytes were asked for, ";
  message.decimal(now.held) << " are held, the limit is ";
  fatal(message.decimal(now.limit.hard));
}

Haste look(platform::ThreadToken token) {
  if (follows()) {
    if (is_due(kBetweenLooksMs)) renew(token);
    if (platform::is_under_pressure()) return Haste::all;
  }
  return is_beyond(g_arena.standing(token)) ? Haste::free : Haste::none;
}

void stop_following() { g_frozen.store(true, std::memory_order_relaxed); }

}  // namespace rh::limit
