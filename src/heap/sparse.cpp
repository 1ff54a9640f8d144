#include "heap/sparse.h"

#include "base/pause.h"
#include "heap/slab_lists.h"

namespace rh::sparse {

namespace {

// The owner waits for the lock meanwhile: it is held for so many slabs that are looked at, or one that gives pages.
constexpr unsigned kAtOnce = 32;

// Then it is left free for some time, about a microsecond, for who waits to see it.
constexpr unsigned kPauses = 32;

constinit std::atomic<size_t> g_returned{0};

class Look {
 public:
  Look(Heap* heap, bool now, unsigned most, ThreadToken token) : heap_(heap), now_(now), most_(most), token_(token) {}

  // False when there are no more, or the lock could not be had.
  bool at_all() {
    do {
      if (!heap_->lock.try_acquire(token_)) return false;
      bool any = now_ || heap_->sparse > Units{};
      if (any) at_some();
      heap_->lock.release();
      if (!any || class_ == size_class::kCount) return false;
      for (unsigned pause = 0; pause < kPauses; ++pause) pause_briefly();
    } while (most_ != 0);
    return true;
  }

 private:
  void at_some() {
    Span* slab = is_next() ? next_ : first();
    unsigned before = most_;
    for (unsigned left = kAtOnce; left != 0 && most_ == before;) {
      if (slab == nullptr || slab->age == kLookedAt) {
        if (++class_ == size_class::kCount) return;
        slab = first();
        continue;
      }
      next_ = slab->next;
      if (is_due(slab)) return_pages(slab);
      slab = next_;
      --left;
    }
    // That was the last: to begin with the first again would make all of them older by another look.
    if (slab == nullptr) ++class_;
  }

  Span* first() const { return heap_->available[class_].first(); }

  // While nobody held the lock it may have become anything.
  bool is_next() const {
    return next_ != nullptr && next_->kind.load() == SpanKind::slab && owner_of(next_) == heap_ &&
           slab::class_of(next_) == class_ && is_available(next_);
  }

  bool is_due(Span* slab) {
    if (now_ || slab->age == kLooks) return true;
    ++slab->age;
    return false;
  }

  void return_pages(Span* slab) {
    size_t bytes = slab::punch(slab);
    remove_available(heap_, slab);
    make_available_last(heap_, slab);
    if (bytes == 0) return;
    g_returned.fetch_add(bytes, std::memory_order_relaxed);
    --most_;
  }

  Heap* heap_;
  bool now_;
  unsigned most_;
  ThreadToken token_;
  size_t class_ = 0;
  Span* next_ = nullptr;
};

}  // namespace

bool look(Heap* heap, bool now, unsigned most, ThreadToken token) {
  if constexpr (platform::kReplacesByZeros) return Look(heap, now, most, token).at_all();
  return false;
}

void note_growth(Heap* heap) {
  constexpr Units kLeast = Units::holding(size_t{1} << 20);
  constexpr size_t kShare = 8;
  if (heap->sparse < kLeast || heap->sparse.bytes() * kShare < g_arena.figures().in_use) return;
  heap->gives_sparse.store(true);
}

RH_COLD void give_some(Heap* heap) {
  constexpr unsigned kSlabs = 8;
  heap->gives_sparse.store(look(heap, true, kSlabs, platform::thread_token()));
}

size_t returned() { return g_returned.load(std::memory_order_relaxed); }

}  // namespace rh::sparse
