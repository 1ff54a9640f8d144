#include "heap/accounts.h"

namespace rh::accounts {

bool charge_shared(Heap* heap, size_t bytes) {
  if (!heap->account.charge(bytes)) return false;
  if (heap->tag_account == nullptr || heap->tag_account->charge(bytes)) return true;
  heap->account.discharge(bytes);
  return false;
}

void discharge_shared(Heap* heap, size_t bytes) {
  heap->account.discharge(bytes);
  if (heap->tag_account != nullptr) heap->tag_account->discharge(bytes);
}

void exchange(Heap* heap, Units from, Units to) {
  discharge(heap, from);
  heap->account.charge_anyway(to.bytes());
  if (heap->tag_account != nullptr) heap->tag_account->charge_anyway(to.bytes());
}

bool admits(const Heap* heap, Units units) {
  bool by_tag = heap->tag_account == nullptr || heap->tag_account->admits(units.bytes());
  return by_tag && heap->account.admits(units.bytes());
}

bool are_limited(const Heap* heap) {
  return heap->account.limit() != 0 || (heap->tag_account != nullptr && heap->tag_account->limit() != 0);
}

// The tag's heaps have no limits of their own, so that each refusal has one account.
void note_refused(Heap* heap) { (heap->tag_account != nullptr ? *heap->tag_account : heap->account).note_refused(); }

void forget_held(Heap* heap) { discharge_shared(heap, heap->account.held()); }

}  // namespace rh::accounts
