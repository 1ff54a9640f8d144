#include "profile/profile.h"

#include "base/bits.h"
#include "base/chance.h"
#include "profile/live.h"

namespace rh::profile {

constinit std::atomic<uint64_t> g_every{0};
constinit std::atomic<bool> g_has_noted{false};

namespace {

constinit Lock g_profile_lock{LockRank::profile};

constinit std::atomic<void (*)()> g_waiting{nullptr};  // for the lock, in the thread that has it

// The lock, for as long as it lives.
class Locked {
 public:
  Locked() { g_profile_lock.acquire(); }
  ~Locked() {
    g_profile_lock.release();
    if (g_waiting.load(std::memory_order_relaxed) == nullptr) return;
    if (auto function = g_waiting.exchange(nullptr)) function();
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

// All under the lock.
struct Books {
  Stacks stacks;
  LiveBlocks blocks;
  Curve curve;
  Amount live, at_peak;
  uint32_t peak;  // how many times there was more than ever before
  uint64_t started_ms;
  uint64_t lost;
};
RH_RARE_ZEROS constinit Books g_books = {};
constinit std::atomic<uint64_t> g_last_every{0};

double weight(uint64_t size, uint64_t every) { return 1 / chance::chosen_share(size == 0 ? 1 : size, every); }

Amount amount(uint64_t size, uint64_t every) {
  const double stands_for = weight(size, every);
  return {static_cast<uint64_t>(stands_for * Amount::kObject + 0.5),
          static_cast<uint64_t>(stands_for * static_cast<double>(size) + 0.5)};
}

// A peak may be over when something is freed, and only then is it known that it was one. So a stack keeps what it had
// at the last one when it changes for the first time after it.
void before_change(Stack& stack) {
  if (stack.peak == g_books.peak) return;
  stack.at_peak = stack.live;
  stack.peak = g_books.peak;
}

void add_live(Stack& stack, Amount more) {
  before_change(stack);
  stack.live.add(more);
  g_books.live.add(more);
  if (g_books.live.bytes <= g_books.at_peak.bytes) return;
  g_books.at_peak = g_books.live;
  ++g_books.peak;
}

void subtract_live(Stack& stack, Amount less) {
  before_change(stack);
  stack.live.subtract(less);
  g_books.live.subtract(less);
}

void end_block(uintptr_t address, uint64_t now_ms) {
  LiveBlock* live = g_books.blocks.find(address);
  if (live == nullptr) return;
  Stack& stack = g_books.stacks.all()[live->stack];
  subtract_live(stack, live->stands_for);
  stack.lifetime_ms += (now_ms - live->made_ms) * live->stands_for.objects / Amount::kObject;
  g_books.blocks.remove(live);
}

// Of twice as many milliseconds as there is room for every second one is left.
void note_curve(uint64_t now_ms) {
  Curve& curve = g_books.curve;
  const uint64_t ms = now_ms - g_books.started_ms;
  if (curve.count != 0 && ms < curve.points[curve.count - 1].ms + curve.every_ms) {
    Curve::Point& last = curve.points[curve.count - 1];
    if (g_books.live.bytes > last.live) last.live = g_books.live.bytes;
    return;
  }
  if (curve.count == Curve::kMost) {
    for (uint32_t i = 0; i != Curve::kMost / 2; ++i) {
      const Curve::Point &one = curve.points[2 * i], &other = curve.points[2 * i + 1];
      curve.points[i] = {one.ms, one.live > other.live ? one.live : other.live};
    }
    curve.count = Curve::kMost / 2;
    curve.every_ms *= 2;
  }
  curve.points[curve.count++] = {ms, g_books.live.bytes};
}

void begin_books() {
  g_books = {};
  g_books.curve.every_ms = 1;
  g_books.started_ms = platform::now_ms();
}

}  // namespace

Lock& lock() { return g_profile_lock; }

void start(uint64_t every) {
  Locked locked;
  if (inconsistent()) return;
  g_books.stacks.clear();
  g_books.blocks.clear();
  begin_books();
  set_every(every);
}

void when_unlocked(void (*function)()) {
  if (!g_profile_lock.held_by(platform::thread_token())) return function();
  g_waiting.store(function);
}

void set_every(uint64_t every) {
  g_last_every.store(every, std::memory_order_relaxed);
  g_every.store(every, std::memory_order_relaxed);
}

void stop() { g_every.store(0, std::memory_order_relaxed); }

void note_allocation(const void* block, size_t size, uint64_t every) {
  uintptr_t frames[platform::kMostFrames];
  const unsigned depth = platform::stack(frames, platform::kMostFrames);
  const Amount stands_for = amount(size, every);
  const uint64_t now = platform::now_ms();
  Locked locked;
  if (inconsistent()) return;
  g_has_noted.store(true, std::memory_order_relaxed);
  end_block(address_of(block), now);  // of whose free nobody told
  const uint32_t number = g_books.stacks.find_or_add(frames, depth);
  LiveBlock* live = number == Stacks::kNone ? nullptr : g_books.blocks.add(address_of(block));
  if (live == nullptr) {
    ++g_books.lost;
    return;
  }
  live->stack = number;
  live->made_ms = now;
  live->size = size;
  live->stands_for = stands_for;
  Stack& stack = g_books.stacks.all()[number];
  ++stack.sampled;
  stack.allocated.add(stands_for);
  add_live(stack, stands_for);
  note_curve(now);
}

void note_free(const void* block) {
  const uint64_t now = platform::now_ms();
  Locked locked;
  if (inconsistent()) return;
  end_block(address_of(block), now);
  note_curve(now);
}

void note_move(const void* from, const void* to) {
  Locked locked;
  LiveBlock* live = inconsistent() ? nullptr : g_books.blocks.find(address_of(from));
  if (live == nullptr) return;
  const LiveBlock kept = *live;
  g_books.blocks.remove(live);
  LiveBlock* moved = g_books.blocks.add(address_of(to));
  if (moved == nullptr) return;
  *moved = kept;
  moved->address = address_of(to);
}

// A longer one was chosen with the greater chance that it has now; a shorter one stays as likely as it was.
bool note_resize(const void* block, size_t size, uint64_t every) {
  Locked locked;
  LiveBlock* live = inconsistent() ? nullptr : g_books.blocks.find(address_of(block));
  if (live == nullptr) return false;
  Amount now = live->stands_for;
  if (size > live->size && every != 0)
    now = amount(size, every);
  else
    now.bytes = size * live->stands_for.objects / Amount::kObject;
  Stack& stack = g_books.stacks.all()[live->stack];
  if (size > live->size) {
    stack.allocated.subtract(live->stands_for);
    stack.allocated.add(now);
  }
  subtract_live(stack, live->stands_for);
  add_live(stack, now);
  live->stands_for = now;
  live->size = size;
  return true;
}

bool take(Snapshot& snapshot) {
  Locked locked;
  if (inconsistent() || !g_books.stacks.copy_to(snapshot.stacks)) return false;
  snapshot.curve = g_books.curve;
  snapshot.live = g_books.live;
  snapshot.at_peak = g_books.at_peak;
  snapshot.peak = g_books.peak;
  snapshot.every = g_last_every.load(std::memory_order_relaxed);
  snapshot.duration_ms = platform::now_ms() - g_books.started_ms;
  snapshot.lost = g_books.lost;
  return true;
}

void give_back(Snapshot& snapshot) { snapshot.stacks.clear(); }

void begin_anew() { begin_books(); }

}  // namespace rh::profile
