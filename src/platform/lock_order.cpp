#include "platform/lock_order.h"

#if defined(RH_DEBUG_CHECKS)

#include "base/bits.h"
#include "platform/report.h"

namespace rh::lock_order {

namespace {

// A word for each lock that is held: its holder and its rank. A signal handler may come between any two steps, and a
// thread without thread-local storage has some too. What finds no place is not checked.
constexpr size_t kBuckets = 256, kPlaces = 4;
constexpr unsigned kRankBits = 3;
constinit std::atomic<uint64_t> g_held[kBuckets][kPlaces] = {};

uint64_t entry(LockRank rank, ThreadToken token) { return uint64_t{token} << kRankBits | static_cast<uint64_t>(rank); }

LockRank rank_of(uint64_t entry) { return static_cast<LockRank>(entry % (1u << kRankBits)); }

ThreadToken holder_of(uint64_t entry) { return static_cast<ThreadToken>(entry >> kRankBits); }

auto& bucket_of(ThreadToken token) { return g_held[mix(token) % kBuckets]; }

// Replaces one entry, if it is there.
void replace(ThreadToken token, uint64_t before, uint64_t after) {
  for (std::atomic<uint64_t>& place : bucket_of(token)) {
    uint64_t expected = before;
    if (place.compare_exchange_strong(expected, after, std::memory_order_relaxed)) return;
  }
}

const char* name_of(LockRank rank) {
  switch (rank) {
  case LockRank::fork_turn: return "fork_turn";
  case LockRank::registry: return "registry";
  case LockRank::heap: return "heap";
  case LockRank::arena: return "arena";
  case LockRank::profile: return "profile";
  case LockRank::helper_start: return "helper_start";
  }
  return "unknown";
}

}  // namespace

void check(LockRank rank, ThreadToken token) {
  for (const std::atomic<uint64_t>& place : bucket_of(token)) {
    uint64_t held = place.load(std::memory_order_relaxed);
    if (held == 0 || holder_of(held) != token || rank_of(held) < rank) continue;
    Text message;
    message << "lock order: a thread that holds a lock of rank " << name_of(rank_of(held));
    message << " waits for one of rank " << name_of(rank);
    fatal(message);
  }
}

void note_held(LockRank rank, ThreadToken token) {
  if (token != kForkToken) replace(token, 0, entry(rank, token));
}

void note_let_go(LockRank rank, ThreadToken token) {
  if (token != kForkToken) replace(token, entry(rank, token), 0);
}

void note_passed_on(LockRank rank, ThreadToken from, ThreadToken to) {
  note_let_go(rank, from);
  note_held(rank, to);
}

void forget_others(ThreadToken token) {
  for (auto& bucket : g_held) {
    for (std::atomic<uint64_t>& place : bucket)
      if (holder_of(place.load(std::memory_order_relaxed)) != token) place.store(0, std::memory_order_relaxed);
  }
}

}  // namespace rh::lock_order

#endif
