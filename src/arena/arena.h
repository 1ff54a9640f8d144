// The arena hands out spans of whole units and takes them back: best fit, warm memory first, neighbours merged,
// what stays unused returned to the OS. One lock; while memory is made usable or given back it is released, one
// thread does either at a time, and who needs what is under way waits for that. It is held across calls to the OS only
// when the realm is opened and, on 32-bit, when pieces go back.
//
// Conservation law: units of the realm below its frontier = in use + dirty + clean + decommitted + busy; all but the
// decommitted, and what is busy being committed again, are committed.
#pragma once

#include "arena/node_sets.h"
#include "arena/partition.h"
#include "arena/realm.h"
#include "base/check.h"
#include "base/counter.h"
#include "platform/lock.h"

namespace rh {

enum class Prefer : uint8_t {
  warm,   // memory used before, if there is some: no page faults
  zero,   // memory that reads as zero, if that is to be had without growing
  dense,  // as warm, and all of it is about to be touched: fresh memory may lie in huge pages
  any,    // as warm, and wherever it lies
};

class Purge;

// Takes over the return of surplus memory from those who allocate, if it can; null until somebody could.
RH_HIDDEN extern constinit std::atomic<bool (*)(Units surplus)> g_leave_surplus;

// More is held than was to be told of, or less (Arena::watch).
RH_HIDDEN extern constinit std::atomic<bool> g_limit_calls;

// What lies beside the spans and counts as held: heaps. Written under the registry's lock.
RH_HIDDEN extern constinit Counter g_bytes_beside;

class Arena {
 public:
  constexpr Arena() = default;

  // A span of exactly `units` at a multiple of `alignment` units, of kind none, owned by nobody; `zero` tells
  // whether it reads as zero. Null when there is no memory. `*lent`: pages of so many units in use are to be moved
  // there, which count once until the loan is ended; set to 0 where there is no limit, and no loan. It is of
  // `partition`, and so is whatever it is cut into or lengthened by: no function below needs to be told.
  Span* allocate(Units units, Units alignment = {1}, Prefer prefer = Prefer::warm, Units* lent = nullptr,
                 Partition partition = kUntyped);

  // For those who give back in batches and take ahead, under one hold of the lock. Takes back all spans of `back`;
  // those that are `zero` still read as such. Then, unless `least` is 0, appends to `list` a span of at least `least`
  // units, and more of at least that, until they have `most` together or memory is short.
  struct Wanted {
    Units least, most;
    Prefer prefer = Prefer::warm;
    Partition partition = kUntyped;
  };
  struct Visit {
    Units given, taken;
    size_t number = 0;      // of all visits by anyone, from 1 on
    bool is_tight = false;  // the visitor is to keep little
  };
  Visit trade(SpanList* back, SpanList* list, const Wanted& wanted, ThreadToken token);

  // Takes back an allocated span. Its descriptors past the first must be of kind none.
  void free(Span* span, ThreadToken token = platform::thread_token());

  // Cuts an allocated span after `units` and gives the rest, an allocated span of its own.
  Span* cut(Span* span, Units units);

  // Lengthens an allocated span in place. False, and nothing changed, when what follows is not free. `zero` on the
  // span then says whether what was added reads as zero.
  bool lengthen(Span* span, Units to);

  // Returns to the OS free memory that has been so for `age_ms` or more, the oldest first, until about `most` is
  // returned, and of no more than so many spans. Gives the bytes returned.
  size_t purge(uint64_t age_ms, Units most = kAll, ThreadToken token = platform::thread_token(), unsigned spans = ~0u);
  static constexpr Units kAll{SIZE_MAX >> kUnitShift};

  // On 32-bit, where address space is short: returns the pieces of it that are free from end to end and purged. Not in
  // the middle of work: what follows them is shorter then.
  void return_address_space(ThreadToken token = platform::thread_token());

  // Free memory with old content that can go back, to an eighth or 128 KiB.
  size_t dirty_bytes() const { return dirty_told_.value(); }

  struct Figures {
    size_t in_use, in_use_peak, dirty, returned, spans_taken, committed, committed_peak;
  };
  Figures figures() const;

  // Limits of what is held (limit.cpp), in bytes. Beyond the soft one what is free is used first, wherever it lies, and
  // growth is slow; nothing is taken that would lead beyond the hard one.
  static constexpr size_t kUnlimited = SIZE_MAX;
  struct Limit {
    size_t soft = kUnlimited, hard = kUnlimited;
    friend bool operator==(const Limit&, const Limit&) = default;
  };
  struct Standing {
    size_t held;
    Limit limit;
  };
  Standing standing(ThreadToken token = platform::thread_token());

  // Sets g_limit_calls as soon as more than `above` is held, or less than `below`. The caller of these holds the lock.
  void set_limit(Limit limit) {
    limit_ = limit;
    limited_.set(limit.hard != kUnlimited);
  }
  Limit limit() const { return limit_; }

  // Whether there is a hard limit. Asked without the lock.
  bool is_limited() const { return limited_.value() != 0; }

  void watch(size_t above, size_t below);

  // Takes back an allocated span that was purged, and ends the loan, if any: its pages were moved away, or they were
  // not moved to it.
  void return_empty(Span* span, platform::Purged purged, Units lent, ThreadToken token);

  // Ends it while both stay.
  void end_loan(Units lent, ThreadToken token);

  // Whether so many bytes may be taken that lie beside the spans. They count as held from then on, before another
  // thread can ask. The caller holds the registry's lock, as who subtracts from g_bytes_beside.
  bool take_beside(size_t bytes);

  // The same of the memory of near heaps (heap/region.h), until it is given back.
  bool take_near(size_t bytes);
  void give_near(size_t bytes);
  size_t held_near() const { return near_.value(); }

  // How often there was none for the hard limit's sake.
  size_t refusals() const { return refusals_.value(); }

  Lock& lock() { return lock_; }

  // For debug builds: ends the process when the law above is broken. The caller holds the lock, or nobody else is
  // there.
  void check() const;

  // In a fork's child, where nothing is sure of what is free: only memory fresh from the realm is handed out from now
  // on.
  void start_over(ThreadToken token);

  // Whether the thread with that token is making memory usable: then nobody else changes the realm.
  bool is_growing(ThreadToken token) const { return grower_.token.load() == token; }

  // The lock was taken from a thread that was terminated: what is free may be half-changed, and is never used again.
  // The caller holds the lock.
  void give_up_free();

  // Whoever was returning memory or making it usable is not here: takes back what it had in hand. The lock is held by
  // the fork, or by the calling thread, which was interrupted under it: then whoever needs it takes it back.
  void after_fork_in_child();

 private:
  // Who works on something with the lock released, 0: nobody, and in which call.
  struct Worker {
    Word<ThreadToken> token;
    const void* frame = nullptr;

    void begin(ThreadToken worker, const void* at) {
      token.store(worker);
      frame = at;
    }
  };

  // Holds the lock; debug builds check the books before it is let go.
  class Guard {
   public:
    explicit Guard(Arena& arena, ThreadToken token = platform::thread_token())
        : arena_(arena), guard_(arena.lock_, token) {}
    ~Guard() {
      if constexpr (kDebugChecks) arena_.check();
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    [[maybe_unused]] Arena& arena_;
    LockGuard guard_;
  };

  Span* take(Units units, Units alignment, Prefer prefer, Partition partition, ThreadToken token, Units lent = {});
  Span* take_fresh(Units units, Units alignment, Partition partition);
  Span* find(Units units, Units alignment, Units room, Prefer prefer, Partition partition);
  Span* find_fit(Units units, Prefer prefer, Partition partition);
  Span* find_warm(Units units, Partition partition, Prefer prefer = Prefer::warm) const;
  Span* worth_lengthening(Units units, Units alignment, Prefer prefer, Partition partition) const;
  Span* lengthen_warm(Units units, Units alignment, Prefer prefer, Partition partition);
  bool commit_behind_warm(Units units, Units alignment, Prefer prefer, Partition partition, ThreadToken token);
  void take_for_dirty(Span* clean, Units offset, Units length, const Span* dirty);
  Span* obtain(Span* decommitted, Units least, Prefer prefer, Partition partition, ThreadToken token);
  Span* grow(Units least, Prefer prefer, Partition partition, ThreadToken token);
  bool extend(Units least, Units wanted, Prefer prefer, Partition partition, ThreadToken token);
  void end_wish_for_huge(ThreadToken token);
  void give_to(Partition partition, Span* fresh, Units units);
  Span* commit(Span* span, Units least, ThreadToken token);
  void put_committed(Span* span, Units committed);
  bool wait_for_growth(ThreadToken token);
  void take_from_grower();
  Span* carve(Span* span, Units units, Units alignment);
  void insert(Span* span, SpanKind kind, uint32_t stamp);
  void insert_oldest(Span* span, uint32_t stamp);
  Span* merge(Span* span, SpanKind kind, uint32_t* stamp);
  void remove(Span* span);
  SpanSet& set_of(SpanKind kind, const Span* span);
  void take_back(SpanList* spans, Visit* visit);
  void take_some(SpanList* list, const Wanted& wanted, Visit* visit, ThreadToken token);
  Units ahead(Units least, Units most) const;
  Span* take_ahead(const Wanted& wanted, ThreadToken token);
  void note_in_use(Units units);
  void note_committed();
  void note_dirty();
  Units find_surplus();
  Units most_held() const;
  Units peak() const { return Units{in_use_peak_.value() >> kUnitShift}; }
  Units soft_mark() const { return Units{limit_.soft >> kUnitShift}; }
  Units far_too_much(Units held, Units surplus);
  Units allowed_surplus(Units held, Units surplus);
  void return_surplus(Units surplus, ThreadToken token);
  Span* take_out(Span* span, Units most);
  Span* widen(Span* span);
  void put_back(const Purge& purge);
  void put_back_whole();
  bool absorb(Span* neighbour, const Span* dirty);
  void rejoin();
  bool wait_for_purge(ThreadToken token);
  bool lost_purger(ThreadToken token) const { return busy_.load() != nullptr && is_lost(purger_, token); }
  static bool is_lost(const Worker& worker, ThreadToken token);
  void take_from_purger();
  size_t releasable() const;
  size_t held() const;
  bool admits(Units more) const;
  Span* refuse();
  bool is_tight() const;
  Units growth_step() const;
  Units growth_step_of(Partition partition) const;
  Units tables_for(Units least) const;
  Units shortfall(Units units) const;
  void let_clean_go();
  Units loan_of(Units moved, Units units) const;
  void repay(Units lent);
  bool make_room(Units units, ThreadToken token);
  void note_held();
  Visit trade_once(SpanList* back, SpanList* list, const Wanted& wanted, ThreadToken token);
  bool lengthen_once(Span* span, Units to, ThreadToken token);
  Span* allocate_once(Units units, Units alignment, Prefer prefer, Partition partition, ThreadToken token, Units lent);
  void release_pieces();
  void insert_part(Span* first, Span* end, SpanKind kind);
  Span* oldest(uint64_t now, uint64_t age_ms) const;

  // Each on a line of its own: who waits for the lock, and who frees, reads what its holder does not write at once.
  alignas(64) Lock lock_{LockRank::arena};
  alignas(64) Counter dirty_told_;
  alignas(64) Divided<SpanSet> clean_;
  Divided<SpanSet> decommitted_;
  SpanList by_age_;             // dirty spans, oldest first
  Units in_pages_;              // of those, what is whole pages
  Word<Span*> busy_;            // in no set: being returned to the OS
  Worker purger_;               // who returns it
  Worker grower_;               // who is making memory usable
  Span* in_growth_ = nullptr;   // in no set: decommitted memory that it commits
  Units unneeded_;              // dirty, and older than anything: what far alignments left
  uint64_t patient_at_ = 0;     // until then one refusal ends a purge
  uint64_t surplus_since_ = 0;  // since then surplus may go back, an eighth of what is held a second
  bool in_pieces_ = false;      // there may be dirty spans between clean ones that would be one, were all dirty
  Units in_use_;
  size_t visits_ = 0;
  Limit limit_;
  Units lent_;      // counted twice otherwise: what is being moved
  Units promised_;  // to the tables of memory that is being made usable
  size_t watched_above_ = kUnlimited, watched_below_ = 0;
  Counter in_use_bytes_, in_use_peak_, dirty_bytes_, returned_, spans_taken_, refusals_;
  Counter near_;     // what near heaps hold
  Counter limited_;  // 1: there is a hard limit
  Counter committed_, committed_peak_;
  Units fresh_[kPartitions];  // what each got of the OS, but the first
  bool is_divided_ = false;   // there is more than the first
  Divided<NodeSets> dirty_;   // last: where there is one node, all but its beginning is never touched
};

extern constinit Arena g_arena;

}  // namespace rh
