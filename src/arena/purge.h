// A span on its way back to the OS. The OS refuses every range with a page that is locked in memory: what can go back
// around such pages is found by halves, the longest parts first. Where pages are longer than units, those of which the
// span has only a part stay too.
#pragma once

#include "arena/span.h"
#include "base/units.h"
#include "platform/platform.h"

namespace rh {

class Purge {
 public:
  // After this many refusals in a row the rest is taken for locked too.
  static constexpr unsigned kPatience = 24;

  // Of the span in `busy`.
  explicit Purge(const Word<Span*>& busy);

  // Gives back what can be. `*patience` is less by one with each refusal, and whole again when something went back; 0
  // ends it.
  void run(unsigned* patience);

  // False in the child of a handler that forked meanwhile: the span was taken back.
  bool is_wanted() const { return busy_.load() == span_; }

  Units refused() const;
  Units returned() const { return length_ - refused(); }

  // Calls visit(offset, length, kind) with the free spans it has become, in address order.
  template <typename Visit> void each_part(Visit visit) const;

 private:
  struct Part {
    Units offset, length;
    Units end() const { return offset + length; }
  };

  bool give_back(Part part, unsigned* patience);
  bool halve(Part* part, unsigned* patience);
  Part next_kept(Units from) const;

  const Word<Span*>& busy_;
  const Span* span_;
  Units length_;
  SpanKind kind_ = SpanKind::free_clean;  // of what went back
  bool has_pages_;
  // What did not, in no order: whole pages first, if there are any.
  static constexpr size_t kMostKept = 24;
  Part kept_[kMostKept];
  size_t kept_count_ = 0;
};

SpanKind kind_after(platform::Purged purged);

template <typename Visit> void Purge::each_part(Visit visit) const {
  for (Units at; at < length_;) {
    Part kept = next_kept(at);
    if (at < kept.offset) visit(at, kept.offset - at, kind_);
    if (kept.length > Units{}) visit(kept.offset, kept.length, SpanKind::free_dirty);
    at = kept.end();
  }
}

}  // namespace rh
