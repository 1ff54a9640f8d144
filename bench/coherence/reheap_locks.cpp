// reheap's locks, by rank: every thread has a heap of its own, and all share the others.
#include "coherence.h"
#include "platform/hold.h"

namespace rh {

namespace {

constexpr unsigned number(LockRank rank) { return static_cast<unsigned>(rank); }
static_assert(number(LockRank::helper_start) < coherence::kMostLockClasses);

[[gnu::constructor]] void name_locks() {
  coherence::name_lock_class(number(LockRank::fork_turn), {"fork_turn", true});
  coherence::name_lock_class(number(LockRank::registry), {"registry", true});
  coherence::name_lock_class(number(LockRank::heap), {"heap", false});
  coherence::name_lock_class(number(LockRank::arena), {"arena", true});
  coherence::name_lock_class(number(LockRank::helper_start), {"helper_start", true});
}

}  // namespace

void hold_begins(LockRank rank) { coherence::hold_begins(number(rank)); }
void hold_refused(LockRank) { coherence::hold_refused(); }
void hold_ends(LockRank rank) { coherence::hold_ends(number(rank)); }

}  // namespace rh
