// What the simulation counts of traffic that is known. The counts exist once a process, and so each TEST has one.
#include "coherence.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "lines.h"
#include "traffic.h"

namespace {

using coherence::lines::Access;
using coherence::lines::Outcome;

constexpr unsigned kShared = 0;
constexpr unsigned kPrivate = 1;
constexpr int kTurns = 200;

struct alignas(64) Line {
  uint64_t words[8] = {};
  uint64_t& operator[](unsigned at) { return words[at]; }
};

// Each core runs `work`, and all begin to be counted at once.
void run_cores(unsigned cores, const std::function<void(unsigned core)>& work) {
  coherence::expect(cores, 1);
  std::vector<std::thread> threads;
  for (unsigned core = 0; core < cores; ++core)
    threads.emplace_back([&work, core] {
      coherence::enter(core);
      coherence::gather();
      work(core);
      coherence::leave();
    });
  for (std::thread& thread : threads) thread.join();
}

// Who had a line last, and how often that changed: what two cores that only write cost each other.
struct Owner {
  unsigned last = coherence::kMostCores;
  uint64_t changes = 0;
  void is_now(unsigned core) {
    changes += last != coherence::kMostCores && last != core;
    last = core;
  }
};

TEST(Lines, EveryStateAndWhatItCosts) {
  auto access = [](unsigned core, Access kind) { return coherence::lines::access(4711, core, kind); };
  EXPECT_EQ(access(0, Access::read), Outcome::cold);
  EXPECT_EQ(access(0, Access::write), Outcome::hit);  // exclusive
  EXPECT_EQ(access(0, Access::write), Outcome::hit);  // changed
  EXPECT_EQ(access(1, Access::read), Outcome::modified);
  EXPECT_EQ(access(0, Access::read), Outcome::hit);  // shared
  EXPECT_EQ(access(2, Access::read), Outcome::clean);
  EXPECT_EQ(access(1, Access::write), Outcome::upgrade);
  EXPECT_EQ(access(2, Access::write), Outcome::modified);
  EXPECT_EQ(access(2, Access::read), Outcome::hit);
  EXPECT_EQ(access(0, Access::read), Outcome::modified);
  EXPECT_EQ(access(1, Access::write), Outcome::clean);  // two had it, and not this one
}

TEST(Counts, ALineThatGoesToAndFroMissesAtEachChangeOfOwner) {
  Line line;
  Owner owner;
  run_cores(2, [&](unsigned core) {
    for (int i = 0; i < kTurns; ++i) {
      traffic::write(line[0]);
      owner.is_now(core);
      coherence::operation();
    }
  });
  EXPECT_GT(owner.changes, kTurns / 4u);
  EXPECT_EQ(coherence::counts().misses_modified, owner.changes);
  EXPECT_EQ(coherence::counts().misses(), owner.changes);
  EXPECT_EQ(coherence::counts().operations, 2u * kTurns);
}

TEST(Counts, LinesOfACoresOwnNeverMiss) {
  Line lines[8];
  run_cores(8, [&](unsigned core) {
    for (int i = 0; i < kTurns; ++i) {
      traffic::write(lines[core][core]);
      coherence::operation();
    }
  });
  EXPECT_EQ(coherence::counts().misses(), 0u);
  EXPECT_GE(coherence::counts().accesses, 8u * kTurns);
}

TEST(Counts, WordsOfOneLineAreOneLine) {
  Line line;
  Owner owner;
  run_cores(2, [&](unsigned core) {
    for (int i = 0; i < kTurns; ++i) {
      traffic::write(line[core]);
      owner.is_now(core);
      coherence::turn();
    }
  });
  EXPECT_GT(owner.changes, 0u);
  EXPECT_EQ(coherence::counts().misses(), owner.changes);
}

TEST(Counts, WhatAllReadMovesOnceToEach) {
  Line line;
  traffic::write(line[0]);
  run_cores(6, [&](unsigned) {
    for (int i = 0; i < kTurns; ++i) {
      traffic::read(line[0]);
      coherence::turn();
    }
  });
  EXPECT_EQ(coherence::counts().misses(), 6u);
  EXPECT_EQ(coherence::counts().stalls, 6u);
  EXPECT_EQ(coherence::counts().misses_modified, 1u);  // the first has it from the thread that wrote it
}

TEST(Counts, AnAccessAcrossLinesIsOneToEach) {
  alignas(64) static unsigned char bytes[256];
  run_cores(2, [&](unsigned core) {
    if (core == 0) traffic::write_bytes(bytes + 60, 136);  // lines 0 to 3
    coherence::turn();
    while (core == 1 && bytes[60] == 0) coherence::turn();
    if (core == 1) traffic::write_bytes(bytes, 256);
  });
  EXPECT_EQ(coherence::counts().misses(), 4u);
}

TEST(Counts, WhatTheProgramDoesMovesLinesAndIsNotCounted) {
  Line line;
  run_cores(2, [&](unsigned core) {
    for (int i = 0; i < kTurns; ++i) {
      if (core == 0)
        coherence::touch(&line, sizeof(line));
      else
        traffic::write(line[0]);
      coherence::turn();
    }
  });
  EXPECT_GT(coherence::counts().misses(), kTurns / 4u);
  EXPECT_LE(coherence::counts().misses(), kTurns);
}

TEST(Counts, NothingBeforeTheCountingNorAfterIt) {
  Line line;
  coherence::expect(2, 1);
  auto work = [&](unsigned core) {
    coherence::enter(core);
    traffic::write(line[0]);
    coherence::gather();
    coherence::stop_counting();
    traffic::write(line[0]);
    coherence::leave();
  };
  std::thread one(work, 0), two(work, 1);
  one.join();
  two.join();
  EXPECT_EQ(coherence::counts().misses(), 0u);
  EXPECT_EQ(coherence::counts().accesses, 0u);
}

TEST(Counts, AtomicChangesAreCountedAndDoWhatTheySay) {
  std::atomic<uint64_t> sum{40};
  std::atomic<uint32_t> word{1};
  run_cores(1, [&](unsigned) {
    EXPECT_EQ(traffic::add(sum, 2), 40u);
    EXPECT_TRUE(traffic::exchange_if(word, 1, 2));
    EXPECT_FALSE(traffic::exchange_if(word, 1, 3));
  });
  EXPECT_EQ(sum.load(), 42u);
  EXPECT_EQ(word.load(), 2u);
  EXPECT_EQ(coherence::counts().read_modify_writes, 3u);
  EXPECT_EQ(coherence::counts().stalls, 0u);
}

TEST(Holds, AreCountedByClassWithWhatMissesInThem) {
  coherence::name_lock_class(kShared, {"shared", true});
  coherence::name_lock_class(kPrivate, {"private", false});
  Line inside, outside;
  Owner owner;
  run_cores(2, [&](unsigned core) {
    for (int i = 0; i < kTurns; ++i) {
      coherence::hold_begins(kPrivate);
      traffic::write(outside[0]);
      coherence::hold_begins(kShared);
      traffic::write(inside[0]);
      coherence::hold_ends(kShared);
      coherence::hold_ends(kPrivate);
      owner.is_now(core);
      coherence::operation();
    }
  });
  const coherence::Holds& shared = coherence::holds_of(kShared);
  const coherence::Holds& own = coherence::holds_of(kPrivate);
  EXPECT_EQ(shared.holds, 2u * kTurns);
  EXPECT_EQ(own.holds, 2u * kTurns);
  EXPECT_EQ(shared.misses, owner.changes);
  EXPECT_EQ(shared.most_misses, 1u);
  EXPECT_EQ(own.misses, 2 * owner.changes);
  EXPECT_EQ(coherence::counts().holds, 2u * kTurns);  // of shared locks alone
  EXPECT_EQ(coherence::counts().hold_misses, owner.changes);
  EXPECT_EQ(coherence::counts().misses(), 2 * owner.changes);
}

TEST(Holds, WhatWasRefusedIsNone) {
  coherence::name_lock_class(kShared, {"shared", true});
  Line line;
  run_cores(1, [&](unsigned) {
    coherence::hold_begins(kShared);
    coherence::hold_refused();
    traffic::write(line[0]);
  });
  EXPECT_EQ(coherence::holds_of(kShared).holds, 0u);
  EXPECT_EQ(coherence::counts().hold_accesses, 0u);
}

TEST(Pages, AreAnothersWhenTheirLastBlockWas) {
  alignas(4096) static unsigned char block[4 * 4096];
  run_cores(2, [&](unsigned core) {
    for (int i = 0; i < kTurns; ++i) {
      coherence::note_block(block + 2 * 4096 * core, 8192);  // each its own
      coherence::turn();
    }
  });
  EXPECT_EQ(coherence::counts().pages, 2u * 2 * (kTurns - 1));
  EXPECT_EQ(coherence::counts().pages_of_others, 0u);
  coherence::note_block(block, sizeof(block));  // by nobody's core: not counted
  EXPECT_EQ(coherence::counts().pages, 2u * 2 * (kTurns - 1));
}

TEST(Turns, AreTheSameInEveryRunAndGoToAll) {
  std::string order;
  run_cores(5, [&](unsigned core) {
    for (int i = 0; i < 8; ++i) {
      order += static_cast<char>('0' + core);
      coherence::turn();
    }
  });
  EXPECT_EQ(order, "2140034340131333231010301441221220022444");
}

TEST(Turns, ASuccessorIsTheSameCore) {
  Line line;
  coherence::expect(1, 1);
  std::thread successor;
  std::thread first([&] {
    coherence::enter(0);
    coherence::gather();
    traffic::write(line[0]);
    successor = std::thread([&] {
      coherence::succeed(0);
      traffic::write(line[0]);
      coherence::leave();
    });
    coherence::hand_on();
  });
  first.join();
  successor.join();
  EXPECT_EQ(coherence::counts().misses(), 0u);
  EXPECT_GE(coherence::counts().accesses, 2u);
}

}  // namespace
