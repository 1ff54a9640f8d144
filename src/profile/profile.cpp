#include "profile/profile.h"

#include "base/bits.h"
#include "base/chance.h"
#include "base/compiler.h"
#include "platform/desk.h"
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
RH_RARE_ZEROS constinit Sieve g_sieve;  // of g_books.blocks
constinit std::atomic<uint64_t> g_last_every{0};

// Where a stack is followed to: the caller may stand on a small one. Each has room for one thread, or for a handler
// that has interrupted one.
constexpr unsigned kDesks = 8;
RH_RARE_ZEROS constinit uintptr_t g_frames[kDesks][platform::kMostFrames] = {};
constinit DeskHolder g_holders[kDesks] = {};

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

// Null when it is not known.
LiveBlock* find_block(uintptr_t address) {
  return g_sieve.may_have(address) && !inconsistent() ? g_books.blocks.find(address) : nullptr;
}

LiveBlock* put_block(uintptr_t address) {
  LiveBlock* live = g_books.blocks.add(address);
  if (live != nullptr) g_sieve.add(address);
  return live;
}

void drop_block(LiveBlock* live) {
  g_sieve.remove(live->address);
  g_books.blocks.remove(live);
}

// False when it is not known.
bool end_block(uintptr_t address, uint64_t now_ms) {
  LiveBlock* live = find_block(address);
  if (live == nullptr) return false;
  Stack& stack = g_books.stacks.all()[live->stack];
  subtract_live(stack, live->stands_for);
  stack.lifetime_ms += (now_ms - live->made_ms) * live->stands_for.objects / Amount::kObject;
  drop_block(live);
  return true;
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
  g_sieve.clear();
  g_books.curve.every_ms = 1;
  g_books.started_ms = platform::now_ms();
}

}  // namespace

RH_AT_START Lock& lock() { return g_profile_lock; }

bool may_know(const void* block) { return g_sieve.may_have(address_of(block)); }

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

// Whether it is in the books now.
static bool add_block(uintptr_t address, size_t size, Amount stands_for) {
  AtDesk desk(g_holders);
  uintptr_t* frames = desk ? g_frames[desk.number()] : nullptr;
  const unsigned depth = frames != nullptr ? platform::stack(frames, platform::kMostFrames) : 0;
  const uint64_t now = platform::now_ms();
  Locked locked;
  if (inconsistent()) return false;
  g_has_noted.store(true, std::memory_order_relaxed);
  end_block(address, now);  // of whose free nobody told
  const uint32_t number = g_books.stacks.find_or_add(frames, depth);
  LiveBlock* live = number == Stacks::kNone ? nullptr : put_block(address);
  if (live == nullptr) {
    ++g_books.lost;
    return false;
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
  return true;
}

void note_allocation(const void* block, size_t size, uint64_t every) {
  const Amount stands_for = amount(size, every);
  if (add_block(address_of(block), size, stands_for)) platform::probe_allocated(block, size, stands_for.bytes);
}

static bool remove_block(uintptr_t address) {
  const uint64_t now = platform::now_ms();
  Locked locked;
  if (inconsistent() || !end_block(address, now)) return false;
  note_curve(now);
  return true;
}

void note_free(const void* block) {
  if (may_know(block) && remove_block(address_of(block))) platform::probe_freed(block);
}

// As many as there is room for; gives how many. Blocks may change their places when one is removed.
static size_t remove_some(bool (*is_gone)(const void*, const void*), const void* context, uintptr_t* gone,
                          size_t most) {
  const uint64_t now = platform::now_ms();
  Locked locked;
  if (inconsistent()) return 0;
  size_t count = 0;
  g_books.blocks.each([&](const LiveBlock& live) {
    if (count != most && is_gone(reinterpret_cast<const void*>(live.address), context)) gone[count++] = live.address;
  });
  for (size_t at = 0; at != count; ++at) end_block(gone[at], now);
  if (count != 0) note_curve(now);
  return count;
}

void note_free_each(bool (*is_gone)(const void*, const void*), const void* context) {
  constexpr size_t kAtOnce = 256;
  uintptr_t gone[kAtOnce];
  size_t count = 0;
  do {
    count = remove_some(is_gone, context, gone, kAtOnce);
    for (size_t at = 0; at != count; ++at) platform::probe_freed(reinterpret_cast<const void*>(gone[at]));
  } while (count == kAtOnce);
}

// False when it is not known, as for the next; else `*block` is what is known of it now.
static bool move_block(uintptr_t from, uintptr_t to, LiveBlock* block) {
  Locked locked;
  LiveBlock* live = find_block(from);
  if (live == nullptr) return false;
  *block = *live;
  block->address = to;
  drop_block(live);
  if (LiveBlock* moved = put_block(to)) *moved = *block;
  return true;
}

// A longer one was chosen with the greater chance that it has now; a shorter one stays as likely as it was.
static void resize_block(LiveBlock* live, size_t size, uint64_t every) {
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
}

static bool resize_known(uintptr_t address, size_t size, uint64_t every, LiveBlock* block) {
  Locked locked;
  LiveBlock* live = find_block(address);
  if (live == nullptr) return false;
  resize_block(live, size, every);
  *block = *live;
  return true;
}

static void tell_there(const LiveBlock& block) {
  platform::probe_allocated(reinterpret_cast<const void*>(block.address), block.size, block.stands_for.bytes);
}

bool note_resize(const void* block, size_t size, uint64_t every) {
  LiveBlock known;
  if (!may_know(block) || !resize_known(address_of(block), size, every, &known)) return false;
  platform::probe_freed(block);
  tell_there(known);
  return true;
}

void begin_move(const void* from, const void* to) {
  LiveBlock known;
  if (move_block(address_of(from), address_of(to), &known)) platform::probe_freed(from);
}

void end_move(const void* to, size_t size, uint64_t every) {
  LiveBlock known;
  if (resize_known(address_of(to), size, every, &known)) tell_there(known);
}

void cancel_move(const void* from, const void* to) {
  LiveBlock known;
  if (move_block(address_of(to), address_of(from), &known)) tell_there(known);
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

void forget_others(ThreadToken own) { leave_desks_of_others(g_holders, own); }

}  // namespace rh::profile
