#include "heap/tags.h"

#include "base/compiler.h"
#include "base/text.h"
#include "heap/registry.h"
#include "heap/shared.h"

namespace rh::tags {

namespace {

// A push looks at this many heaps for one left behind before it makes one: so there are never many more of a tag than
// threads that used it at once.
constexpr int kLooks = 8;

struct Heaps {
  std::atomic<Heap*> first{nullptr};   // the newest
  std::atomic<Heap*> cursor{nullptr};  // of those who look for one left behind
};

struct alignas(64) Entry {
  Account account;
  Heaps heaps[kPartitions];
  char name[kMostLetters + 1] = {};
};

// That of kUntagged has no account.
RH_RARE_ZEROS constinit Entry g_tags[kMost + 1] = {};

// The registry's lock guards what is not there yet.
constinit std::atomic<Tag> g_last{0};

size_t length_of(const char* name) {
  size_t length = 0;
  while (length <= kMostLetters && name[length] != 0) ++length;
  return length;
}

Heap* next_left_behind(Heaps& heaps) {
  Heap* heap = heaps.cursor.load(std::memory_order_acquire);
  if (heap == nullptr) heap = heaps.first.load(std::memory_order_acquire);
  if (heap != nullptr) heaps.cursor.store(heap->next_of_tag, std::memory_order_release);
  return heap;
}

Heap* find(Heaps& heaps, Heap* own) {
  for (int look = 0; look < kLooks; ++look) {
    Heap* heap = next_left_behind(heaps);
    if (heap == nullptr) return nullptr;
    // It may be this thread's, which a fork made forget it.
    if (is_mine(heap) || shared::take_up_if_left(heap, own)) return heap;
  }
  return nullptr;
}

Heap* make(Heaps& heaps, Tag tag, Partition partition, Heap* own) {
  Heap* heap = shared::create_bound(own);
  if (heap == nullptr) return nullptr;
  {
    LockGuard guard(registry::lock());  // it is in the list already
    heap->tag_account = tag != kUntagged ? &g_tags[tag].account : nullptr;
    heap->tag = static_cast<uint8_t>(tag);
    heap->partition = static_cast<uint8_t>(partition);
  }
  Heap* first = heaps.first.load(std::memory_order_relaxed);
  do {
    heap->next_of_tag = first;
  } while (!heaps.first.compare_exchange_weak(first, heap, std::memory_order_release, std::memory_order_relaxed));
  return heap;
}

RH_COLD Heap* find_or_make(Heap* own, Tag tag, Partition partition) {
  Heaps& heaps = g_tags[tag].heaps[partition];
  Heap* heap = find(heaps, own);
  if (heap == nullptr) heap = make(heaps, tag, partition, own);
  if (heap == nullptr) return nullptr;
  heap->next_beside = own->tagging.heaps;
  return own->tagging.heaps = heap;
}

// The thread's heap of a tag that it has used, or null. It comes to the front: the next to look for it is near.
Heap* known(Tagging& tagging, Tag tag, Partition partition) {
  auto is_it = [=](const Heap* heap) { return heap->tag == tag && (!kHardened || heap->partition == partition); };
  Heap** link = &tagging.heaps;
  while (*link != nullptr && !is_it(*link)) link = &(*link)->next_beside;
  Heap* heap = *link;
  if (heap == nullptr || heap == tagging.heaps) return heap;
  *link = heap->next_beside;
  heap->next_beside = tagging.heaps;
  return tagging.heaps = heap;
}

Heap* heap_of(Heap* own, Tag tag, Partition partition = kUntyped) {
  if (tag == kUntagged && partition == kUntyped) return own;
  Heap* heap = known(own->tagging, tag, partition);
  return RH_LIKELY(heap != nullptr) ? heap : find_or_make(own, tag, partition);
}

Tag in_force(const Tagging& tagging) {
  size_t depth = tagging.depth;
  if (depth == 0) return kUntagged;
  return tagging.in_force[(depth < Tagging::kDeepest ? depth : Tagging::kDeepest) - 1];
}

}  // namespace

bool is_name(const char* name) {
  const size_t length = name != nullptr ? length_of(name) : 0;
  return length != 0 && length <= kMostLetters;
}

Tag create(const char* name) {
  if (!is_name(name)) return kUntagged;
  LockGuard guard(registry::lock());
  Tag last = g_last.load(std::memory_order_relaxed);
  for (Tag tag = 1; tag <= last; ++tag)
    if (same_text(g_tags[tag].name, name)) return tag;
  if (last == kMost) return kUntagged;
  __builtin_memcpy(g_tags[last + 1].name, name, length_of(name) + 1);
  g_last.store(last + 1, std::memory_order_release);
  return last + 1;
}

Tag count() { return g_last.load(std::memory_order_acquire) + 1; }
const char* name_of(Tag tag) { return tag == kUntagged ? "untagged" : g_tags[tag].name; }
Account& account_of(Tag tag) { return g_tags[tag].account; }
Heap* heaps_of(Tag tag, Partition partition) {
  return g_tags[tag].heaps[partition].first.load(std::memory_order_acquire);
}

bool push(Heap* own, Tag tag) {
  if (own == nullptr) return false;
  Tagging& tagging = own->tagging;
  const Tag before = in_force(tagging);
  const size_t depth = tagging.depth++;
  if (depth >= Tagging::kDeepest) return tag == before;
  Heap* heap = exists(tag) ? heap_of(own, tag) : nullptr;
  tagging.in_force[depth] = static_cast<uint8_t>(heap != nullptr ? tag : before);
  if (heap != nullptr) platform::set_thread_word(heap);
  return heap != nullptr;
}

void pop() {
  Heap* own = own_heap_if_any();
  if (own == nullptr || own->tagging.depth == 0) return;
  --own->tagging.depth;
  Heap* heap = heap_of(own, in_force(own->tagging));
  platform::set_thread_word(heap != nullptr ? heap : own);
}

Tag in_force() {
  const Heap* heap = heap_in_use_if_any();
  return heap != nullptr ? heap->tag : kUntagged;
}

Heap* heap_for(Heap* own, Partition partition) {
  if (own == nullptr) return nullptr;
  const Tag tag = in_force(own->tagging);
  if (tag != kUntagged) return heap_of(own, tag, partition);
  Heap*& heap = own->tagging.typed[partition];
  if (RH_UNLIKELY(heap == nullptr)) heap = heap_of(own, kUntagged, partition);
  return heap;
}

}  // namespace rh::tags
