// Random use of the arena against a model, and the arena's conservation law.
#pragma once

#include <map>

#include "arena/arena.h"
#include "arena/growth.h"
#include "platform/fake/fake.h"
#include "platform/pages.h"
#include "support/input.h"
#include "support/pages.h"

namespace rh {

inline uintptr_t address(const Span* span) { return g_realm.address(span); }
inline size_t bytes(const Span* span) { return Units{span->units}.bytes(); }

struct Free {
  size_t dirty = 0, clean = 0, decommitted = 0;  // units
  size_t returnable = 0;                         // bytes
};

// The free memory according to the descriptor table. Fails where the descriptors of a free span disagree.
inline Free walk_free() {
  Free found;
  SpanKind before = SpanKind::none;
  unsigned node = 0;  // of that
  Span* end = g_realm.first() + g_realm.count();
  for (Span* span = g_realm.first(); span < end; ++span) {
    SpanKind kind = span->kind.load();
    if (!is_free(kind)) {
      FUZZ_EXPECT(kind != SpanKind::free_tail);  // without a head
      FUZZ_EXPECT(kind != SpanKind::busy);       // nobody is returning memory
      before = SpanKind::none;
      continue;
    }
    // No two of a kind side by side; what is dirty, of a node.
    FUZZ_EXPECT(kind != before || (kind == SpanKind::free_dirty && span->node != node));
    node = span->node;
    FUZZ_EXPECT(span->zero == (kind != SpanKind::free_dirty));
    (kind == SpanKind::free_dirty   ? found.dirty
     : kind == SpanKind::free_clean ? found.clean
                                    : found.decommitted) += span->units;
    if (kind == SpanKind::free_dirty) {
      const platform::Pages whole = platform::pages_within(address(span), address(span) + bytes(span));
      if (!whole.empty()) found.returnable += whole.size();
    }
    FUZZ_EXPECT(fake::is_committed(address(span), bytes(span)) == (kind != SpanKind::free_decommitted));
    if (kind == SpanKind::free_clean) FUZZ_EXPECT(pages::are_zero(address(span), bytes(span)));
    for (uint32_t unit = 1; unit + 1 < span->units; ++unit) FUZZ_EXPECT(span[unit].kind.load() == SpanKind::none);
    if (span->units > 1) {
      FUZZ_EXPECT(span[span->units - 1].kind.load() == SpanKind::free_tail);
      FUZZ_EXPECT(span[span->units - 1].units == span->units - 1);
      span += span->units - 1;
    }
    before = kind;
  }
  return found;
}

inline void expect_conserved(const Arena& arena) {
  Free found = walk_free();
  Arena::Figures figures = arena.figures();
  FUZZ_EXPECT(Units{found.dirty}.bytes() == figures.dirty);
  // Of what is dirty, what is whole pages.
  size_t told = arena.dirty_bytes(), off = told > found.returnable ? told - found.returnable : found.returnable - told;
  FUZZ_EXPECT(off <= told / 8 || off < 128 * 1024);
  FUZZ_EXPECT(figures.in_use + Units{found.dirty + found.clean + found.decommitted}.bytes() == g_realm.committed());
  FUZZ_EXPECT(figures.committed == g_realm.committed() - Units{found.decommitted}.bytes());
  FUZZ_EXPECT(figures.committed_peak >= figures.committed);
  FUZZ_EXPECT(figures.in_use_peak >= figures.in_use);
}

// Takes, cuts, lengthens, frees and returns spans as the input decides, and holds what it got against a model.
class ArenaPlayer {
 public:
  // `failing`: calls to the OS fail too.
  ArenaPlayer(Arena& arena, Input input, bool failing) : arena_(arena), input_(input), failing_(failing) {}

  void play() {
    while (input_.more()) {
      act();
      arena_.check();
    }
    for (fake::Call kind : kKinds) fake::fail_nth(kind, 0);
    check();
    while (!live_.empty()) give_back(live_.begin()->first);
    check();
    FUZZ_EXPECT(arena_.figures().in_use == 0);
    Span* last = arena_.allocate({1});
    FUZZ_EXPECT(last != nullptr);
    arena_.free(last);
  }

 private:
  static constexpr fake::Call kKinds[] = {fake::Call::reserve, fake::Call::commit, fake::Call::purge};

  size_t units() { return 1 + input_.size_up_to(11); }

  void act() {
    fake::advance(input_.below(4));
    switch (input_.below(16)) {
    case 0:
      if (failing_) fake::fail_nth(kKinds[input_.below(3)], 1 + input_.below(3));
      return;
    case 1: return purge();
    case 2: return lengthen();
    case 3: return cut();
    case 4: return trade();
    case 5: fake::set_node(input_.below(2)); return check();
    case 6: return lock_or_unlock();
    case 7:
    case 8:
    case 9:
      if (Span* span = some()) give_back(span);
      return;
    default: return take();
    }
  }

  Span* some() {
    if (live_.empty()) return nullptr;
    auto at = live_.begin();
    for (size_t steps = input_.below(live_.size()); steps != 0; --steps) ++at;
    return at->first;
  }

  void enter(Span* span) {
    FUZZ_EXPECT(span->kind.load() == SpanKind::none);
    auto next = live_.lower_bound(span);
    FUZZ_EXPECT(next == live_.end() || span + span->units <= next->first);
    FUZZ_EXPECT(next == live_.begin() || std::prev(next)->first + std::prev(next)->first->units <= span);
    if (span->zero) FUZZ_EXPECT(pages::are_zero(address(span), bytes(span)));
    mark(span);
  }

  void mark(Span* span) {
    live_[span] = ++seed_;
    pages::mark(address(span), bytes(span), seed_);
  }

  void expect_marks(Span* span, size_t units) {
    FUZZ_EXPECT(pages::are_marked(address(span), Units{units}.bytes(), live_[span]));
  }

  void take() {
    size_t wanted = units(), alignment = size_t{1} << input_.below(8);
    Prefer prefer = input_.below(2) ? Prefer::warm : Prefer::zero;
    Span* span = arena_.allocate({wanted}, {alignment}, prefer);
    if (span == nullptr) return;
    FUZZ_EXPECT(span->units == wanted && address(span) % Units{alignment}.bytes() == 0);
    enter(span);
  }

  void trade() {
    SpanList back, list;
    size_t given = 0;
    for (size_t count = input_.below(4); count != 0; --count) {
      Span* span = some();
      if (span == nullptr) break;
      expect_marks(span, span->units);
      live_.erase(span);
      span->zero = false;
      given += span->units;
      back.push_back(span);
    }
    size_t least = input_.below(9), most = least + input_.below(40);
    Arena::Visit visit = arena_.trade(&back, &list, {Units{least}, Units{most}}, platform::thread_token());
    FUZZ_EXPECT(back.empty() && visit.given.count == given && visit.taken.count <= most);
    size_t taken = 0;
    while (Span* span = list.pop_front()) {
      FUZZ_EXPECT(span->units >= least);
      taken += span->units;
      enter(span);
    }
    FUZZ_EXPECT(taken == visit.taken.count && (taken == 0) == (least == 0 || taken == 0));
  }

  void give_back(Span* span) {
    expect_marks(span, span->units);
    live_.erase(span);
    arena_.free(span);
  }

  void cut() {
    Span* span = some();
    if (span == nullptr || span->units == 1) return;
    size_t at = 1 + input_.below(span->units - 1), whole = span->units;
    Span* rest = arena_.cut(span, {at});
    FUZZ_EXPECT(rest == span + at && span->units == at && rest->units == whole - at);
    mark(span);
    mark(rest);
  }

  void lengthen() {
    Span* span = some();
    if (span == nullptr) return;
    size_t before = span->units, to = before + units();
    bool done = arena_.lengthen(span, {to});
    FUZZ_EXPECT(span->units == (done ? to : before));
    expect_marks(span, before);
    if (!done) return;
    if (span->zero) FUZZ_EXPECT(pages::are_zero(address(span) + Units{before}.bytes(), Units{to - before}.bytes()));
    mark(span);
  }

  void lock_or_unlock() {
    Span* span = some();
    if (span == nullptr) return;
    uintptr_t page = align_down(address(span) + input_.below(span->units) * kUnitSize, platform::page_size());
    if (input_.below(2) == 0) return fake::unlock_pages(page, align_up(bytes(span), platform::page_size()));
    fake::lock_pages(page, platform::page_size());
  }

  void purge() {
    size_t dirty = arena_.figures().dirty;
    size_t returned = arena_.purge(input_.below(30));
    size_t now = arena_.figures().dirty;
    // Where pages are longer than units some clean memory goes back with what is dirty.
    FUZZ_EXPECT(units_of_page() > Units{1} ? now <= dirty && now + returned >= dirty : now == dirty - returned);
  }

  void check() {
    expect_conserved(arena_);
    size_t units = 0;
    for (auto [span, seed] : live_) {
      units += span->units;
      FUZZ_EXPECT(pages::are_marked(address(span), bytes(span), seed));
      for (uint32_t unit = 0; unit < span->units; ++unit) FUZZ_EXPECT(!is_free(span[unit].kind.load()));
    }
    FUZZ_EXPECT(Units{units}.bytes() == arena_.figures().in_use);
  }

  Arena& arena_;
  Input input_;
  const bool failing_;
  std::map<Span*, uint64_t> live_;
  uint64_t seed_ = 0;
};

}  // namespace rh
