// How much the arena hands out where there is a limit. Exact at any number of threads, for all of it happens under the
// arena's lock, which whoever takes a span holds anyway (docs/design/limits.md).
#include "arena/arena.h"

#include "arena/growth.h"
#include "arena/purge.h"

namespace rh {

constinit std::atomic<bool> g_limit_calls{false};
constinit Counter g_bytes_beside;

namespace {

// Fresh memory is committed in steps that grow with the heap, so that small programs stay small and large ones
// ask seldom.
constexpr size_t kLeastStep = 256 * 1024;

Units commit_step(size_t committed) {
  constexpr size_t kMost = platform::kMostCommittedAhead;
  size_t step = committed / 8;
  return Units::holding(step < kLeastStep ? kLeastStep : step > kMost ? kMost : step);
}

// What the descriptors of so much memory take, and the notes of what was asked for. On 32-bit their table is there from
// the beginning, but touched as it is used.
size_t tables_of(size_t bytes) { return table_bytes(bytes) + note_bytes(bytes); }

// More than their part of what they stand for.
constexpr size_t kTableShare = kExactSizes ? 8 : 64;

}  // namespace

// What the OS has lent us, as far as we know it: where untouched memory costs nothing, that is what may have been
// touched.
size_t Arena::held() const {
  size_t spans = committed_.value();
  if constexpr (!platform::kChargesUntouched) {
    Units touched = in_use_ + dirty_.total();
    if (const Span* busy = busy_.load(); busy != nullptr) touched += Units{busy->units};
    spans = (touched - lent_).bytes();
  }
  return spans + tables_of(g_realm.committed()) + promised_.bytes() + g_bytes_beside.value() + near_.value();
}

bool Arena::admits(Units more) const {
  if (RH_LIKELY(limit_.hard == kUnlimited)) return true;
  size_t held = this->held();
  return held <= limit_.hard && more.count <= (limit_.hard - held) >> kUnitShift;
}

bool Arena::take_beside(size_t bytes) {
  Guard guard(*this);
  if (!admits(Units::holding(bytes))) return refuse() != nullptr;
  g_bytes_beside.add(bytes);
  return true;
}

bool Arena::take_near(size_t bytes) {
  Guard guard(*this);
  if (!admits(Units::holding(bytes))) return refuse() != nullptr;
  near_.add(bytes);
  return true;
}

void Arena::give_near(size_t bytes) {
  Guard guard(*this);
  near_.subtract(bytes);
}

Span* Arena::refuse() {
  refusals_.add(1);
  return nullptr;
}

// Then nobody takes ahead, nor keeps much for himself.
bool Arena::is_tight() const {
  if (RH_LIKELY(limit_ == Limit{})) return false;
  constexpr size_t kLastShare = 16;
  size_t held = this->held();
  return held > limit_.soft || held > limit_.hard - limit_.hard / kLastShare;
}

// No further than to a limit.
Units Arena::growth_step() const {
  Units step = commit_step(committed_.value());
  if (RH_LIKELY(limit_ == Limit{})) return step;
  size_t held = this->held(), end = limit_.soft < limit_.hard ? limit_.soft : limit_.hard;
  if (platform::kChargesUntouched && is_tight()) return {};
  size_t room = end > held ? end - held : 0;
  Units most{(room - room / kTableShare) >> kUnitShift};
  if (!platform::kChargesUntouched && most < Units::holding(kLeastStep)) most = Units::holding(kLeastStep);
  return most < step ? most : step;
}

// Each partition grows in steps by what it has itself.
Units Arena::growth_step_of(Partition partition) const {
  Units step = growth_step();
  if (kPartitions == 1 || partition == kUntyped) return step;
  Units own = commit_step(fresh_[partition].bytes());
  return own < step ? own : step;
}

// What fresh memory takes beside itself.
Units Arena::tables_for(Units least) const {
  if (RH_LIKELY(limit_.hard == kUnlimited)) return {};
  Units step = growth_step();
  return Units::holding(tables_of((step < least ? least : step).bytes()));
}

// How much is to be purged, so that so much more can be taken; 0 where that would not do.
Units Arena::shortfall(Units units) const {
  if (units.count > limit_.hard >> kUnitShift) return {};
  size_t held = this->held(), hard = limit_.hard;
  Units missing = held > hard ? units + Units::holding(held - hard) : units - Units{(hard - held) >> kUnitShift};
  return missing > dirty_.total() ? Units{} : missing;
}

// What was made usable ahead is charged too: it goes back like what was used.
void Arena::let_clean_go() {
  uint32_t now = static_cast<uint32_t>(platform::now_ms());
  for (Partition partition = 0; partition < kPartitions; ++partition)
    while (Span* span = clean_.of(partition).best_fit({1})) {
      remove(span);
      insert_oldest(span, now);
    }
}

bool Arena::make_room(Units units, ThreadToken token) {
  Units missing;
  {
    Guard guard(*this, token);
    if (inconsistent()) return false;
    Units needed = units + tables_for(units);
    if (admits(needed)) return false;
    if (platform::kChargesUntouched) let_clean_go();
    missing = shortfall(needed);
  }
  return missing > Units{} && purge(0, missing, token) != 0;
}

// Where committed memory counts, both do.
Units Arena::loan_of(Units moved, Units units) const {
  if (platform::kChargesUntouched || !is_limited()) return {};
  return moved < units ? moved : units;
}

// In a fork's child nothing is lent any more.
void Arena::repay(Units lent) { lent_ = lent_ > lent ? lent_ - lent : Units{}; }

void Arena::return_empty(Span* span, platform::Purged purged, Units lent, ThreadToken token) {
  span->owner.store(nullptr);
  uint32_t now = static_cast<uint32_t>(platform::now_ms());
  Guard guard(*this, token);
  if (inconsistent()) return;
  repay(lent);
  note_in_use(in_use_ - Units{span->units});
  insert(span, kind_after(purged), now);
  note_dirty();
  note_committed();
}

void Arena::end_loan(Units lent, ThreadToken token) {
  Guard guard(*this, token);
  repay(lent);
}

Arena::Standing Arena::standing(ThreadToken token) {
  Guard guard(*this, token);
  return {held(), limit_};
}

void Arena::watch(size_t above, size_t below) {
  watched_above_ = above;
  watched_below_ = below;
  note_held();
}

void Arena::note_held() {
  if (RH_LIKELY(watched_above_ == kUnlimited && watched_below_ == 0)) return;
  size_t held = this->held();
  if (held <= watched_above_ && held >= watched_below_) return;
  if (!g_limit_calls.load(std::memory_order_relaxed)) g_limit_calls.store(true, std::memory_order_relaxed);
}

}  // namespace rh
