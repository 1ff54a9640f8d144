#include "arena/whole_spans.h"

#include "arena/realm.h"
#include "base/check.h"

namespace rh {

Span* WholeSpans::take(Units units) {
  Span* span = admits(units) ? spans_.first() : nullptr;
  while (span != nullptr && span->units != units.count) span = span->next;
  if (span != nullptr) remove(span);
  return span;
}

void WholeSpans::put(Span* span, Heap* owner) {
  span->kind.store(SpanKind::kept);
  span->owner.store(with_note(owner, kInStore | kUndivided));
  spans_.push_front(span);
  total_ += Units{span->units};
}

Span* WholeSpans::take_behind(Span* span, Heap* owner) {
  Span* behind = span + span->units;
  const bool waits = total_ > Units{} && g_realm.contains(behind) && behind->kind.load() == SpanKind::kept &&
                     behind->owner.load() == with_note(owner, kInStore | kUndivided);
  if (!waits) return nullptr;
  remove(behind);
  return behind;
}

Span* WholeSpans::pop() {
  Span* span = spans_.last();
  if (span != nullptr) remove(span);
  return span;
}

void WholeSpans::remove(Span* span) {
  RH_CHECK(span->kind.load() == SpanKind::kept);
  spans_.remove(span);
  total_ -= Units{span->units};
  span->kind.store(SpanKind::none);
  span->owner.store(nullptr);
}

bool WholeSpans::is_valid() const {
  Units sum;
  for (const Span* span = spans_.first(); span != nullptr; span = span->next) sum += Units{span->units};
  return sum == total_;
}

}  // namespace rh
