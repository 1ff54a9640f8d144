// arena: spans taken, cut, lengthened, freed and returned, with calls to the OS that fail, against a model.
#include "arena/arena.h"

#include <map>

#include "input.h"
#include "platform/fake/fake.h"
#include "support/pages.h"

namespace {

using namespace rh;

constexpr size_t kMiB = size_t{1} << 20;

class Player {
 public:
  explicit Player(Input input) : input_(input) {}

  void play() {
    while (input_.more()) {
      act();
      g_arena.check();
    }
    for (fake::Call kind : kKinds) fake::fail_nth(kind, 0);
    check();
    while (!live_.empty()) give_back(live_.begin()->first);
    check();
    FUZZ_EXPECT(g_arena.figures().in_use == 0);
  }

 private:
  static constexpr fake::Call kKinds[] = {fake::Call::reserve, fake::Call::commit, fake::Call::purge};

  static uintptr_t start(Span* span) { return g_realm.address(span); }

  size_t units() { return 1 + input_.size_up_to(11); }

  void act() {
    fake::advance(input_.below(4));
    switch (input_.below(16)) {
    case 0:
      return fake::fail_nth(kKinds[input_.below(3)], 1 + input_.below(3));
    case 1:
      return purge();
    case 2:
      return lengthen();
    case 3:
      return cut();
    case 4:
      return singles();
    case 5:
      return check();
    case 6:
      return lock_or_unlock();
    case 7:
    case 8:
    case 9:
      if (Span* span = some()) give_back(span);
      return;
    default:
      return take();
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
    if (span->zero) FUZZ_EXPECT(pages::are_zero(start(span), Units{span->units}.bytes()));
    mark(span);
  }

  void mark(Span* span) {
    live_[span] = ++seed_;
    pages::mark(start(span), Units{span->units}.bytes(), seed_);
  }

  void expect_marks(Span* span, size_t units) {
    FUZZ_EXPECT(pages::are_marked(start(span), Units{units}.bytes(), live_[span]));
  }

  void take() {
    size_t wanted = units(), alignment = size_t{1} << input_.below(8);
    Prefer prefer = input_.below(2) ? Prefer::warm : Prefer::zero;
    Span* span = g_arena.allocate({wanted}, {alignment}, prefer);
    if (span == nullptr) return;
    FUZZ_EXPECT(span->units == wanted && start(span) % Units{alignment}.bytes() == 0);
    enter(span);
  }

  void singles() {
    SpanList list;
    for (size_t got = g_arena.allocate_single(&list, 1 + input_.below(9)); got != 0; --got) {
      FUZZ_EXPECT(!list.empty());
      enter(list.pop_front());
    }
    FUZZ_EXPECT(list.empty());
  }

  void give_back(Span* span) {
    expect_marks(span, span->units);
    live_.erase(span);
    g_arena.free(span);
  }

  void cut() {
    Span* span = some();
    if (span == nullptr || span->units == 1) return;
    Span* rest = g_arena.cut(span, {1 + input_.below(span->units - 1)});
    FUZZ_EXPECT(rest == span + span->units);
    mark(span);
    mark(rest);
  }

  void lengthen() {
    Span* span = some();
    if (span == nullptr) return;
    size_t before = span->units, to = before + units();
    bool done = g_arena.lengthen(span, {to});
    FUZZ_EXPECT(span->units == (done ? to : before));
    expect_marks(span, before);
    if (!done) return;
    if (span->zero) FUZZ_EXPECT(pages::are_zero(start(span) + Units{before}.bytes(), Units{to - before}.bytes()));
    mark(span);
  }

  void lock_or_unlock() {
    Span* span = some();
    if (span == nullptr) return;
    uintptr_t page = start(span) + input_.below(span->units) * kUnitSize;
    if (input_.below(2) == 0) return fake::unlock_pages(page, Units{span->units}.bytes());
    fake::lock_pages(page, platform::kPageSize);
  }

  void purge() {
    size_t dirty = g_arena.dirty_bytes();
    size_t returned = g_arena.purge(input_.below(30));
    FUZZ_EXPECT(g_arena.dirty_bytes() == dirty - returned);
  }

  // The conservation law of the arena, from its table.
  void check() {
    size_t in_use = 0, dirty = 0, clean = 0;
    Span* end = g_realm.first() + g_realm.count();
    for (Span* span = g_realm.first(); span < end; ++span) {
      SpanKind kind = span->kind.load();
      if (live_.count(span) != 0) {
        in_use += span->units;
        for (uint32_t unit = 0; unit < span->units; ++unit) FUZZ_EXPECT(span[unit].kind.load() == SpanKind::none);
      } else if (kind == SpanKind::free_dirty) {
        dirty += span->units;
      } else if (kind == SpanKind::free_clean) {
        clean += span->units;
        FUZZ_EXPECT(pages::are_zero(start(span), Units{span->units}.bytes()));
      } else {
        FUZZ_EXPECT(kind == SpanKind::none);
        continue;
      }
      span += span->units - 1;
    }
    FUZZ_EXPECT(Units{in_use}.bytes() == g_arena.figures().in_use);
    FUZZ_EXPECT(Units{dirty}.bytes() == g_arena.figures().dirty);
    FUZZ_EXPECT(Units{in_use + dirty + clean}.bytes() == g_realm.committed());
  }

  Input input_;
  std::map<Span*, uint64_t> live_;
  uint64_t seed_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fake::limit_committed(64 * kMiB);
  Player(Input(data, size)).play();
  return 0;
}
