// What is held beyond the most that was ever in use, or beyond twice what is, and goes back before its time.
#include "arena/arena.h"
#include "platform/platform.h"

namespace rh {

namespace {

// What goes back before its time interrupts every processor that runs this program, and is often faulted in again at
// once: an eighth of what is held a second, at once no more than a quarter. The peak may grow a little further
// meanwhile.
constexpr uint64_t kHeldInMs = 8000, kMostSavedMs = 2000;

// But no more often than this, and no more at once than that, unless what is held allows more in that time.
constexpr uint64_t kBetweenSurplusMs = 20;
constexpr Units kMostSurplus = Units::holding(4 << 20);

// So much more than is in use may stay warm.
constexpr Units kLittleWarm = Units::holding(4 << 20);

Units least_of(Units one, Units other) { return one < other ? one : other; }
Units most_of(Units one, Units other) { return one < other ? other : one; }

}  // namespace

// What is to go back before its time. Memory held, in use or warm, does not grow far past its highest mark while some
// of it is free, but in the wrong place; nor does more stay warm than is in use. Not a little at a time, for what goes
// back may have to be faulted in again.
Units Arena::find_surplus() {
  const Units held = in_use_ + dirty_.total();
  Units keep = held;
  if (dirty_.total() > in_use_ + kLittleWarm) keep = in_use_ + in_use_;
  if (!(held < most_held())) keep = least_of(keep, least_of(soft_mark(), peak()));
  if (!(keep < held)) return {};
  const Units surplus = least_of(held - keep, dirty_.total());
  return most_of(allowed_surplus(held, surplus), far_too_much(held, surplus));
}

// A little more than the highest mark, and no more than the soft limit.
Units Arena::most_held() const {
  return least_of(soft_mark(), peak() + Units::holding((1 << 20) + peak().bytes() / 64));
}

// What is held beyond half as much again as the mark, where it is no little: at once. Where blocks are cut short, or
// each is longer than the last, what is left over serves nobody.
Units Arena::far_too_much(Units held, Units surplus) {
  const Units most = peak() + most_of(kLittleWarm, Units{peak().count / 2});
  if (!(most < held) || platform::now_ms() < patient_at_) return {};
  return least_of(surplus, most_of(held - most, kMostSurplus));
}

// Not by the peak: after one that is long past, all that is freed would go back at once.
Units Arena::allowed_surplus(Units held, Units surplus) {
  uint64_t now = platform::now_ms();
  if (now < patient_at_ || now < surplus_since_ + kBetweenSurplusMs) return {};
  uint64_t saved = now - surplus_since_ < kMostSavedMs ? now - surplus_since_ : kMostSavedMs;
  auto worth = [&](uint64_t ms) { return Units{static_cast<size_t>(held.count * ms / kHeldInMs)}; };
  const Units at_once = most_of(kMostSurplus, worth(kBetweenSurplusMs));
  const Units allowed = least_of(surplus, least_of(worth(saved), at_once));
  uint64_t spent = allowed.count * kHeldInMs / held.count;
  surplus_since_ = now - saved + (spent > kBetweenSurplusMs ? spent : kBetweenSurplusMs);
  return allowed;
}

constinit std::atomic<bool (*)(Units)> g_leave_surplus{nullptr};

// Who does it here waits for a block meanwhile: few spans at a time.
void Arena::return_surplus(Units surplus, ThreadToken token) {
  bool (*leave)(Units) = g_leave_surplus.load(std::memory_order_relaxed);
  if (leave != nullptr && leave(surplus)) return;
  constexpr unsigned kMostSpans = 32;
  purge(0, surplus, token, kMostSpans);
}

}  // namespace rh
