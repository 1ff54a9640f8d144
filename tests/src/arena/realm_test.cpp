#include "arena/realm.h"

#include <gtest/gtest.h>

#include <cstring>

#if UINTPTR_MAX > 0xffffffff
#include "arena/window/place.h"
#endif
#include "base/bits.h"
#include "platform/fake/fake.h"
#include "support/child.h"
#include "support/pages.h"

namespace rh {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

[[maybe_unused]] uintptr_t place(uint64_t address) { return static_cast<uintptr_t>(address); }

struct Extended {
  Span* span;
  Units got;
};

Extended extend(Realm& realm, size_t least, size_t wanted) {
  Extended extended = {nullptr, {}};
  extended.span = realm.extend(Units::holding(least), Units::holding(wanted), &extended.got);
  return extended;
}

// What extend() promises about the memory it returns.
void expect_usable(Realm& realm, const Extended& extended) {
  ASSERT_NE(extended.span, nullptr);
  uintptr_t start = realm.address(extended.span);
  size_t bytes = extended.got.bytes();
  ASSERT_EQ(start % kUnitSize, 0u);
  ASSERT_TRUE(fake::is_committed(start, bytes));
  ASSERT_TRUE(pages::are_zero(start, bytes));
  pages::mark(start, bytes, 1);
  for (size_t unit = 0; unit < extended.got.count; ++unit) {
    static const Span fresh = {};
    Span* span = extended.span + unit;
    ASSERT_TRUE(realm.contains(span));
    ASSERT_EQ(std::memcmp(static_cast<const void*>(span), static_cast<const void*>(&fresh), sizeof(Span)), 0);
    for (size_t offset : {size_t{0}, size_t{1}, kUnitSize - 1}) {
      void* pointer = reinterpret_cast<void*>(start + unit * kUnitSize + offset);
      ASSERT_TRUE(realm.holds(pointer));
      ASSERT_EQ(realm.span_of(pointer), span);
      ASSERT_EQ(realm.find(pointer), span);
    }
  }
}

TEST(Realm, IsEmptyAtFirst) {
  Realm realm;
  int something = 0;
  EXPECT_FALSE(realm.holds(&something));
  EXPECT_FALSE(realm.holds(nullptr));
  EXPECT_EQ(realm.find(&something), nullptr);
  EXPECT_EQ(realm.count(), 0u);
  EXPECT_EQ(realm.reserved(), 0u);
  EXPECT_EQ(realm.committed(), 0u);
  EXPECT_EQ(fake::calls(fake::Call::reserve), 0u);
}

TEST(Realm, AllThatWasTakenIsWalked) {
  Realm realm;
  EXPECT_TRUE(realm.run_from(realm.first()).empty());
  size_t taken = 0;
  for (int step = 0; step < 100; ++step) taken += extend(realm, kMiB, 3 * kMiB).got.count;
  size_t seen = 0;
  realm.each_span([&seen, &realm](const Span* span) {
    ++seen;
    EXPECT_TRUE(realm.covers(reinterpret_cast<void*>(realm.address(span))));
  });
  EXPECT_GE(seen, taken);
  EXPECT_LE(seen, realm.reserved() >> kUnitShift);
}

TEST(Realm, GrowsByPieces) {
  Realm realm;
  size_t committed = 0;
  for (int step = 0; step < 300; ++step) {
    Extended extended = extend(realm, kMiB / 4, kMiB);
    ASSERT_NO_FATAL_FAILURE(expect_usable(realm, extended));
    committed += extended.got.bytes();
    ASSERT_EQ(realm.committed(), committed);
    ASSERT_GE(realm.reserved(), committed);
  }
  if (!k64Bit || platform::places_freely()) EXPECT_LT(realm.reserved(), 3 * committed + 64 * kMiB);
  EXPECT_LT(fake::calls(fake::Call::reserve), 50u);
}

TEST(Realm, GivesOneUnitWhenAskedForOne) {
  Realm realm;
  Extended extended = extend(realm, 1, 1);
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, extended));
  EXPECT_EQ(extended.got, Units{1});
}

TEST(Realm, GivesMoreThanAPieceInOneRange) {
  Realm realm;
  size_t large = k64Bit ? 3000 * kMiB : 200 * kMiB;
  ASSERT_NE(extend(realm, 1, 1).span, nullptr);
  Extended extended = extend(realm, large, large);
  ASSERT_NE(extended.span, nullptr);
  EXPECT_EQ(extended.got.bytes(), large);
  EXPECT_TRUE(fake::is_committed(realm.address(extended.span), large));
  EXPECT_EQ(realm.span_of(reinterpret_cast<void*>(realm.address(extended.span) + large - 1)),
            extended.span + extended.got.count - 1);
}

TEST(Realm, RefusesWhatNoAddressSpaceHolds) {
  Realm realm;
  Extended extended = extend(realm, SIZE_MAX / 4, SIZE_MAX / 4);
  EXPECT_EQ(extended.span, nullptr);
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, extend(realm, 1, kMiB)));
}

TEST(Realm, GivesLessThanWantedWhenTheChargeIsRefused) {
  Realm realm;
  ASSERT_NE(extend(realm, 1, 1).span, nullptr);
  fake::limit_committed(fake::committed_bytes() + kMiB);
  Extended extended = extend(realm, 4 * kUnitSize, 16 * kMiB);
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, extended));
  EXPECT_GE(extended.got.count, 4u);
  EXPECT_LE(extended.got.bytes(), kMiB);
}

TEST(Realm, CommitRefusedChangesNothing) {
  Realm realm;
  Extended before = extend(realm, 1, 1);
  size_t committed = realm.committed(), count = realm.count();
  fake::fail_all(fake::Call::commit, true);
  EXPECT_EQ(extend(realm, 1, kMiB).span, nullptr);
  EXPECT_EQ(realm.committed(), committed);
  EXPECT_EQ(realm.count(), count);
  fake::fail_all(fake::Call::commit, false);
  Extended after = extend(realm, 1, kMiB);
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, after));
  EXPECT_EQ(after.span, before.span + 1);
}

TEST(Realm, RefusalsHalveTheStep) {
  if (!platform::places_freely()) GTEST_SKIP() << "the realm is one piece here";
  Realm realm;
  fake::limit_reserved(40 * kMiB);
  Extended first = extend(realm, 1, kMiB);
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, first));
  for (Extended next = first; next.span != nullptr;) next = extend(realm, 1, kMiB);
  EXPECT_GE(realm.reserved(), 32 * kMiB);
}

// Both forms of growing stop when nothing can be reserved, and resume when something can.
TEST(Realm, ReserveRefused) {
  Realm realm;
  fake::fail_all(fake::Call::reserve, true);
  EXPECT_EQ(extend(realm, 1, kMiB).span, nullptr);
  fake::fail_all(fake::Call::reserve, false);
  Extended first = extend(realm, 1, kMiB);
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, first));
  fake::fail_all(fake::Call::reserve, true);
  Extended last = first;
  for (Extended next = first; next.span != nullptr; next = extend(realm, 1, 64 * kMiB)) last = next;
  EXPECT_EQ(realm.committed(), realm.reserved());
  fake::fail_all(fake::Call::reserve, false);
  if (realm.reserved() >= kGiB) return;  // the window was reserved at once, and is used up
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, extend(realm, 1, kMiB)));
}

// After a failed extend the realm extends at the next attempt.
void expect_to_extend_again() {
  Realm realm;
  for (size_t step = 0; step < 4; ++step) {
    Extended extended = extend(realm, 24 * kMiB, 24 * kMiB);
    if (extended.span == nullptr) extended = extend(realm, 24 * kMiB, 24 * kMiB);
    ASSERT_NE(extended.span, nullptr);
    pages::mark(realm.address(extended.span), extended.got.bytes(), 1);
  }
}

TEST(Realm, EveryCallFailingInTurn) {
  for (fake::Call kind : {fake::Call::reserve, fake::Call::commit}) {
    bool reached = true;
    for (size_t nth = 1; reached; ++nth) {
      ASSERT_LT(nth, 100u);
      fake::fail_nth(kind, nth);
      // 2: it succeeded, with fewer calls.
      Ending ending = in_child([&] {
        expect_to_extend_again();
        return fake::calls(kind) < nth ? 2 : 0;
      });
      ASSERT_TRUE(ending.well(0) || ending.well(2)) << nth;
      reached = ending.well(0);
    }
    fake::fail_nth(kind, 0);
  }
}

TEST(Realm, AWindowCannotBeSetOnceMemoryIsTaken) {
  Realm realm;
  EXPECT_TRUE(realm.set_window({}));
  ASSERT_NE(extend(realm, 1, 1).span, nullptr);
  EXPECT_FALSE(realm.set_window({}));
}

#if UINTPTR_MAX > 0xffffffff

TEST(Realm, PiecesFollowEachOther) {
  if (!platform::places_freely()) GTEST_SKIP() << "no address can be chosen here";
  Realm realm;
  Extended first = extend(realm, kMiB, kMiB);
  EXPECT_EQ(realm.base(), fake::space_start());
  EXPECT_EQ(address_of(realm.first()), fake::table_start());
  EXPECT_LE(realm.reserved(), 64 * kMiB);
  EXPECT_EQ(realm.window_size(), kMostWindow);
  size_t units = first.got.count;
  while (realm.reserved() < 3 * kGiB) {
    Extended next = extend(realm, kMiB, 32 * kMiB);
    ASSERT_EQ(next.span, first.span + units);
    units += next.got.count;
  }
  EXPECT_EQ(realm.count(), units);
  EXPECT_FALSE(realm.contains(first.span + units));
  EXPECT_FALSE(realm.holds(reinterpret_cast<void*>(realm.base() + units * kUnitSize)));
  EXPECT_FALSE(realm.holds(reinterpret_cast<void*>(realm.base() - 1)));
}

TEST(Realm, StepsOverWhatIsOccupied) {
  if (!platform::places_freely()) GTEST_SKIP() << "no address can be chosen here";
  Realm realm;
  Extended first = extend(realm, 64 * kMiB, 64 * kMiB);
  uintptr_t behind = realm.base() + realm.reserved();
  fake::occupy(behind + 36 * kMiB, platform::kPageSize);
  Extended second = extend(realm, 64 * kMiB, 64 * kMiB);
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, second));
  EXPECT_EQ(realm.address(second.span), behind + 64 * kMiB);
  // The descriptors in between stay empty.
  for (Span* span = first.span + first.got.count; span < second.span; ++span) {
    ASSERT_TRUE(realm.contains(span));
    ASSERT_EQ(span->kind.load(), SpanKind::none);
  }
  EXPECT_EQ(realm.committed(), 128 * kMiB);
}

// In few steps, and without walking all that was stepped over.
TEST(Realm, StepsOverMuchThatIsOccupied) {
  if (!platform::places_freely()) GTEST_SKIP() << "no address can be chosen here";
  Realm realm;
  ASSERT_NE(extend(realm, 64 * kMiB, 64 * kMiB).span, nullptr);
  uintptr_t behind = realm.base() + realm.reserved();
  fake::occupy(behind, 40 * kGiB);
  size_t before = fake::calls(fake::Call::reserve);
  Extended second = extend(realm, 64 * kMiB, 64 * kMiB);
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, second));
  EXPECT_LE(fake::calls(fake::Call::reserve) - before, 50u);
  EXPECT_GE(realm.address(second.span), behind + 40 * kGiB);
  EXPECT_LE(realm.address(second.span), behind + 46 * kGiB);
  EXPECT_LE(realm.side_tables(), 2 * (130 * kMiB / kUnitSize * sizeof(Span) + 130 * kMiB / 16));
  size_t seen = 0;
  realm.each_span([&seen](const Span*) { ++seen; });
  EXPECT_GE(seen, 128 * kMiB / kUnitSize);
  EXPECT_LE(seen, realm.reserved() >> kUnitShift);
  // In the gap: nothing is there, and the next run is found from there.
  void* between = reinterpret_cast<void*>(behind + kGiB);
  EXPECT_TRUE(realm.holds(between));
  EXPECT_FALSE(realm.covers(between));
  EXPECT_EQ(realm.span_of(between)->kind.load(), SpanKind::none);
  EXPECT_EQ(realm.run_from(realm.span_of(between)).first, second.span);
  EXPECT_TRUE(realm.run_from(second.span + second.got.count).empty());
}

TEST(Realm, AnOccupiedBeginningIsSteppedOver) {
  if (!platform::places_freely()) GTEST_SKIP() << "no address can be chosen here";
  Realm realm;
  uintptr_t base = fake::space_start();
  fake::occupy(base, kMiB);
  Extended first = extend(realm, kMiB, kMiB);
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, first));
  EXPECT_EQ(realm.address(first.span), base + 64 * kMiB);
}

TEST(Realm, AnOccupiedTableMeansAnotherPlace) {
  if (!platform::places_freely()) GTEST_SKIP() << "no address can be chosen here";
  Realm realm;
  fake::space_start();
  fake::occupy(fake::table_start(), platform::kPageSize);
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, extend(realm, kMiB, kMiB)));
  EXPECT_NE(address_of(realm.first()), fake::table_start());
}

// As 64-bit ARM may have it; whatever the system says of addresses behind the end.
// Each attempt is one call or two, and where sizes are noted their table is one more. Above all there is an end.
constexpr size_t kFewCalls = 160;

TEST(Realm, LiesWithinTheAddressSpaceThereIs) {
  if (!platform::places_freely()) GTEST_SKIP() << "no address can be chosen here";
  for (unsigned bits : kAddressBits) {
    for (platform::Reserve answer : {platform::Reserve::refused, platform::Reserve::occupied}) {
      Ending ending = in_child([bits, answer] {
        const Layout layout{bits};
        const uintptr_t table = layout.place(platform::random_seed()), notes = table + layout.table_room;
        const uintptr_t base = notes + layout.notes_room;
        fake::space_start();
        if (bits != kAddressBits[0])
          for (uintptr_t start : {table, notes, base}) EXPECT_TRUE(fake::add_space(start, kGiB / 16));
        fake::end_address_space(uintptr_t{1} << bits, answer);
        Realm realm;
        expect_usable(realm, extend(realm, kMiB, kMiB));
        EXPECT_EQ(realm.base(), base);
        EXPECT_EQ(realm.window_size(), layout.window);
        EXPECT_LE(realm.base() + realm.window_size(), uint64_t{1} << bits);
        EXPECT_LE(fake::calls(fake::Call::reserve), kFewCalls);
        return 0;
      });
      EXPECT_TRUE(ending.well(0)) << bits;
    }
  }
}

TEST(Realm, WhereNoPlaceCanBeHadTheSystemChoosesAfterFewCalls) {
  fake::space_start();
  fake::end_address_space(kGiB, platform::Reserve::occupied);
  Realm realm;
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, extend(realm, kMiB, kMiB)));
  EXPECT_EQ(realm.window_size(), realm.reserved());
  EXPECT_LE(fake::calls(fake::Call::reserve), kFewCalls);
}

TEST(Realm, AWindowAskedForIsNoLongerThanThereIsRoomFor) {
  if (!platform::places_freely()) GTEST_SKIP() << "no address can be chosen here";
  const Layout layout{39};
  const uintptr_t table = layout.place(platform::random_seed()), notes = table + layout.table_room;
  fake::space_start();
  for (uintptr_t start : {table, notes, notes + static_cast<uintptr_t>(layout.notes_room)})
    ASSERT_TRUE(fake::add_space(start, kGiB / 16));
  fake::end_address_space(uintptr_t{1} << 39, platform::Reserve::refused);
  Realm realm;
  ASSERT_TRUE(realm.set_window({.size = kMostWindow}));
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, extend(realm, kMiB, kMiB)));
  EXPECT_EQ(realm.window_size(), layout.window);
  EXPECT_EQ(realm.window().size, layout.window);
}

TEST(Realm, WhereAddressesCannotBeChosenOneReservationIsMade) {
  fake::set_places_freely(false);
  Realm realm;
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, extend(realm, kMiB, kMiB)));
  EXPECT_EQ(realm.window_size(), realm.reserved());
  EXPECT_GE(realm.reserved(), 8 * kGiB);
}

TEST(Realm, TheOneReservationHalvesUntilGranted) {
  fake::set_places_freely(false);
  fake::limit_reserved(place(3 * kGiB));
  Realm realm;
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, extend(realm, kMiB, kMiB)));
  EXPECT_EQ(realm.reserved(), 2 * kGiB);
  while (extend(realm, kMiB, 64 * kMiB).span != nullptr) continue;
  EXPECT_EQ(realm.committed(), realm.reserved());
}

TEST(Realm, AWindowOfASizeEndsThere) {
  for (bool freely : {false, true}) {
    if (freely && !platform::places_freely()) continue;
    fake::set_places_freely(freely);
    Realm realm;
    ASSERT_TRUE(realm.set_window({.size = 48 * kMiB}));
    ASSERT_NO_FATAL_FAILURE(expect_usable(realm, extend(realm, kMiB, kMiB)));
    EXPECT_EQ(realm.window_size(), 48 * kMiB);
    while (extend(realm, kMiB, kMiB).span != nullptr) continue;
    EXPECT_EQ(realm.committed(), 48 * kMiB) << freely;
    EXPECT_EQ(extend(realm, kUnitSize, kUnitSize).span, nullptr);
  }
}

TEST(Realm, ALowWindowLiesBelowFourGiB) {
  ASSERT_TRUE(fake::add_space(place(kGiB), 512 * kMiB));
  fake::occupy(place(kGiB), kMiB);
  Realm realm;
  ASSERT_TRUE(realm.set_window({.size = 256 * kMiB, .place = Window::Place::low}));
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, extend(realm, kMiB, kMiB)));
  EXPECT_EQ(realm.base(), kGiB + 16 * kMiB);
  EXPECT_EQ(realm.reserved(), 256 * kMiB);  // all of it, so that no other mapping takes the place
  while (extend(realm, kMiB, kMiB).span != nullptr) continue;
  EXPECT_EQ(realm.committed(), 256 * kMiB);
}

// How far a signed 32-bit displacement reaches.
constexpr uint64_t kReach = 2 * kGiB;

TEST(Realm, AWindowAtTheImageIsWithinItsReach) {
  constexpr uintptr_t kImage = 64 * kGiB + 128 * kMiB;
  ASSERT_TRUE(fake::add_space(62 * kGiB, 4 * kGiB));
  fake::set_image_address(kImage);
  for (uint64_t size : {256 * uint64_t{kMiB}, kGiB, 2 * kGiB}) {
    Realm realm;
    ASSERT_TRUE(realm.set_window({.size = size, .place = Window::Place::image}));
    ASSERT_NE(extend(realm, kMiB, kMiB).span, nullptr);
    ASSERT_EQ(realm.window().place, Window::Place::image) << size;
    EXPECT_GE(realm.base() + kReach, kImage);
    EXPECT_LE(realm.base() + size, kImage + kReach) << size;
    if (size == kGiB) break;  // the space is used up
  }
}

// An image at the bottom of the address space does not have 2 GiB below it: a window that would reach too far above it
// is impossible.
TEST(Realm, AWindowThatCannotLieWithinReachIsRefused) {
  if (!fake::add_space(16 * kMiB, 2 * kGiB + 256 * kMiB)) GTEST_SKIP() << "the system has something there";
  fake::set_image_address(4 * kMiB);
  Realm realm;
  ASSERT_TRUE(realm.set_window({.size = 2 * kGiB, .place = Window::Place::image}));
  ASSERT_NE(extend(realm, kMiB, kMiB).span, nullptr);
  EXPECT_EQ(realm.window().place, Window::Place::anywhere);
  EXPECT_GE(realm.base(), 4 * kGiB);
}

TEST(Realm, AWindowAtAnAddress) {
  uintptr_t address = fake::space_start() + 5 * kUnitSize;
  Realm realm;
  ASSERT_TRUE(realm.set_window({.size = 64 * kMiB, .place = Window::Place::address, .address = address}));
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, extend(realm, kMiB, kMiB)));
  EXPECT_EQ(realm.base(), address);
  EXPECT_EQ(realm.window().place, Window::Place::address);
}

TEST(Realm, AWindowWhereThereIsNoRoomLiesElsewhere) {
  uintptr_t address = fake::space_start() + place(kGiB);
  fake::occupy(address, kUnitSize);
  Realm realm;
  ASSERT_TRUE(realm.set_window({.size = 64 * kMiB, .place = Window::Place::address, .address = address}));
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, extend(realm, kMiB, kMiB)));
  EXPECT_EQ(realm.window().place, Window::Place::anywhere);
  while (extend(realm, kMiB, kMiB).span != nullptr) continue;
  EXPECT_EQ(realm.committed(), 64 * kMiB);
}

TEST(Realm, AWindowTooLargeForAPlaceLiesElsewhere) {
  Realm realm;
  ASSERT_TRUE(realm.set_window({.size = 5 * kGiB, .place = Window::Place::low}));
  ASSERT_NE(extend(realm, kMiB, kMiB).span, nullptr);
  EXPECT_EQ(realm.window().place, Window::Place::anywhere);
}

#else

TEST(Realm, TheTableCoversAllAddresses) {
  Realm realm;
  ASSERT_NE(extend(realm, 1, 1).span, nullptr);
  Span* last = realm.span_of(reinterpret_cast<void*>(UINTPTR_MAX - 1));
  EXPECT_EQ(last, realm.first() + ((size_t{1} << (32 - kUnitShift)) - 1));
  EXPECT_EQ(last->kind.load(), SpanKind::none);
  int something = 0;
  EXPECT_EQ(realm.span_of(&something)->kind.load(), SpanKind::none);
}

TEST(Realm, PiecesLieAnywhere) {
  Realm realm;
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, extend(realm, kMiB, kMiB)));
  size_t room = realm.room().bytes();
  // More than is left in the piece: another one elsewhere.
  Extended second = extend(realm, room + kUnitSize, room + kUnitSize);
  ASSERT_NO_FATAL_FAILURE(expect_usable(realm, second));
  EXPECT_GE(second.got.bytes(), room + kUnitSize);
}

#endif

}  // namespace
}  // namespace rh
