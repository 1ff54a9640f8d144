// Desks: static room for what takes more than the caller's stack may have, each for one thread at a time. There may be
// several of one kind.
#pragma once

#include "platform/platform.h"

namespace rh {

// Whose a desk is; 0: nobody's.
using DeskHolder = std::atomic<platform::ThreadToken>;

// A thread is at one of the desks for as long as this lives. It waits a while for one, and takes that of a thread that
// was terminated there. It does not wait for itself, for it may be in a handler of a signal that came while it was at
// its desk: where there is one desk alone it gets none. That it should have been interrupted at all of several is less
// likely than that it left them by long jumps (out of a stack that overflowed), so it gets one of these again.
class AtDesk {
 public:
  template <unsigned kCount> explicit AtDesk(DeskHolder (&holders)[kCount]) : AtDesk(holders, kCount) {}
  ~AtDesk();
  AtDesk(const AtDesk&) = delete;
  AtDesk& operator=(const AtDesk&) = delete;

  // Whether it got one, and which.
  explicit operator bool() const { return holder_ != nullptr; }
  size_t number() const { return static_cast<size_t>(holder_ - first_); }

 private:
  AtDesk(DeskHolder* holders, unsigned count);

  DeskHolder* const first_;
  DeskHolder* holder_ = nullptr;
};

// In a forked child, where the others are not: their desks are free.
template <unsigned kCount> void leave_desks_of_others(DeskHolder (&holders)[kCount], platform::ThreadToken own) {
  for (DeskHolder& holder : holders)
    if (holder.load(std::memory_order_relaxed) != own) holder.store(0, std::memory_order_relaxed);
}

}  // namespace rh
