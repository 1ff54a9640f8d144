#include "platform/desk.h"

namespace rh {

namespace {

// Whether it is the caller's now. A holder is asked after when there was much patience with him.
bool take_desk(DeskHolder& desk, platform::ThreadToken own, bool much_patience, platform::ThreadToken& holder) {
  holder = much_patience ? desk.load(std::memory_order_relaxed) : 0;
  if (holder == own || (holder != 0 && !platform::thread_is_gone(holder))) return false;
  return desk.compare_exchange_strong(holder, own, std::memory_order_acquire);
}

}  // namespace

AtDesk::AtDesk(DeskHolder* holders, unsigned count) : first_(holders) {
  constexpr unsigned kPatience = 1000;
  constexpr unsigned kAskAfter = 16;  // rounds
  const platform::ThreadToken own = platform::thread_token();
  unsigned own_ones = 0;  // of those looked at last
  for (unsigned attempt = 0; attempt != kPatience && holder_ == nullptr; ++attempt) {
    DeskHolder& desk = holders[attempt % count];
    platform::ThreadToken holder;
    const bool taken = take_desk(desk, own, attempt / count % kAskAfter == kAskAfter - 1, holder);
    own_ones = holder == own ? own_ones + 1 : 0;
    if (taken || (own_ones == count && count != 1)) holder_ = &desk;
    if (own_ones == count) return;
    if (!taken && attempt % count == count - 1) platform::back_off(attempt);
  }
}

AtDesk::~AtDesk() {
  if (holder_ != nullptr) holder_->store(0, std::memory_order_release);
}

}  // namespace rh
