// Random use of a set of free spans, against a set of the C++ library's.
#pragma once

#include <set>
#include <vector>

#include "arena/span_set.h"
#include "support/input.h"

namespace rh {

class SpanSetPlayer {
 public:
  explicit SpanSetPlayer(Input input) : input_(input) {}

  void play() {
    while (input_.more()) {
      change(input_.below(spans_.size()));
      FUZZ_EXPECT(set_.total().count == total_ && set_.is_valid());
      check(length());
    }
    while (!model_.empty()) {
      Span* span = set_.best_fit(Units{1});
      FUZZ_EXPECT(model_.erase(span) == 1);
      set_.remove(span);
    }
    FUZZ_EXPECT(set_.total() == Units{0} && set_.best_fit(Units{1}) == nullptr);
  }

 private:
  // By length, then address: the order of large spans.
  struct Before {
    bool operator()(const Span* a, const Span* b) const { return a->units != b->units ? a->units < b->units : a < b; }
  };
  static constexpr size_t kListed = 64;  // lengths below this are kept in lists, in any order

  // Often few lengths, so that many are equal, and around the border between lists and tree; else any.
  size_t length() { return 1 + (input_.below(2) == 0 ? input_.below(90) : input_.size_up_to(20)); }

  void change(size_t index) {
    Span* span = &spans_[index];
    if (inside_[index]) {
      model_.erase(span);
      set_.remove(span);
      total_ -= span->units;
    } else {
      span->units = static_cast<uint32_t>(length());
      set_.insert(span);
      model_.insert(span);
      total_ += span->units;
    }
    inside_[index] = !inside_[index];
  }

  void check(size_t units) {
    Span* got = set_.best_fit(Units{units});
    auto shortest = model_.begin();
    while (shortest != model_.end() && (*shortest)->units < units) ++shortest;
    FUZZ_EXPECT((got == nullptr) == (shortest == model_.end()));
    if (got == nullptr) return;
    FUZZ_EXPECT(model_.count(got) == 1 && got->units == (*shortest)->units);
    FUZZ_EXPECT(got->units < kListed || got == *shortest);
  }

  Input input_;
  std::vector<Span> spans_ = std::vector<Span>(300);
  std::vector<bool> inside_ = std::vector<bool>(300);
  SpanSet set_;
  std::set<Span*, Before> model_;
  size_t total_ = 0;
};

}  // namespace rh
