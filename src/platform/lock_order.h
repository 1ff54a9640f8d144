// The order of locks, and who may hold one. A thread waits only for a lock of a higher rank than any it holds. It may
// try for every lock, once or for a while (Lock::try_acquire, acquire_within): then it waits for nobody for ever. Debug
// builds check this at each acquisition.
#pragma once

#include <cstdint>

#include "platform/platform.h"

namespace rh {

using platform::ThreadToken;

enum class LockRank : uint8_t {
  fork_turn,     // one fork at a time; only asked for so long
  registry,      // the list of heaps
  heap,          // one heap: another's only by trying
  arena,         // free memory and the realm
  profile,       // what was sampled (profile/profile.h)
  helper_start,  // one start of the idle helper; asked for in signal handlers too, whatever their thread holds
};

// Tokens that are no thread's: the helper thread's, which thread_token() knows nothing of, and a fork's.
inline constexpr ThreadToken kHelperToken = 1;
inline constexpr ThreadToken kForkToken = 3;

// For debug builds alone.
namespace lock_order {

// Ends the process with a message when `token` holds a lock that forbids waiting for one of `rank`.
void check(LockRank rank, ThreadToken token);

// It holds one of `rank` from now on, or no longer. A fork's are not noted: it waits for nothing.
void note_held(LockRank rank, ThreadToken token);
void note_let_go(LockRank rank, ThreadToken token);
void note_passed_on(LockRank rank, ThreadToken from, ThreadToken to);

// In a fork's child: the other threads are not there.
void forget_others(ThreadToken token);

}  // namespace lock_order
}  // namespace rh
