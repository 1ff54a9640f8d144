// arena: the set of free spans, against a set of the C++ library's.
#include "arena/span_set.h"

#include <set>
#include <vector>

#include "support/input.h"

namespace {

using rh::Span;

struct Before {
  bool operator()(const Span* a, const Span* b) const { return a->units != b->units ? a->units < b->units : a < b; }
};
using Model = std::set<Span*, Before>;

Span* shortest(const Model& model, size_t units) {
  Span probe = {};
  probe.units = static_cast<uint32_t>(units);
  // The probe's own address decides nothing: all spans of its length fit.
  for (auto at = model.lower_bound(&probe); at != model.begin() && (*std::prev(at))->units >= units;) --at;
  for (Span* span : model) {
    if (span->units >= units) return span;
  }
  return nullptr;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  std::vector<Span> spans(200);
  std::vector<bool> inside(spans.size());
  rh::SpanSet set;
  Model model;
  size_t total = 0;
  while (input.more()) {
    size_t index = input.below(spans.size());
    Span* span = &spans[index];
    if (inside[index]) {
      model.erase(span);
      set.remove(span);
      total -= span->units;
    } else {
      span->units = static_cast<uint32_t>(1 + input.size_up_to(20));
      set.insert(span);
      model.insert(span);
      total += span->units;
    }
    inside[index] = !inside[index];
    FUZZ_EXPECT(set.total().count == total && set.is_valid());
    size_t units = 1 + input.size_up_to(20);
    Span* got = set.best_fit(rh::Units{units});
    Span* expected = shortest(model, units);
    FUZZ_EXPECT((got == nullptr) == (expected == nullptr));
    if (got == nullptr) continue;
    FUZZ_EXPECT(model.count(got) == 1 && got->units == expected->units);
    FUZZ_EXPECT(got->units < 64 || got == expected);
  }
  return 0;
}
