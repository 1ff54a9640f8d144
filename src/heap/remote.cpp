#include "heap/remote.h"

#include "base/prefetch.h"
#include "heap/abandoned.h"
#include "heap/block.h"
#include "heap/books.h"
#include "heap/retained.h"
#include "heap/slab_lists.h"

namespace rh {

namespace {

// A batch is sent when it holds this much; larger blocks go alone.
constexpr size_t kBatchBytes = 4096;

// When this much waits for an owner, who sends more looks after the inbox itself: the owner may be asleep, or gone.
constexpr size_t kHelpFromBytes = size_t{1} << 20;

// What waits is counted as held back in such steps.
constexpr size_t kCountedBytes = size_t{64} << 10;

// A message is its last block, which the owner will link to those it has: one cache line of a batch is all that is
// written and read to pass it on. The first word links messages in the inbox, the second holds the rest.
struct Message {
  Message* next;
  alignas(8) uint64_t packed;
};
static_assert(sizeof(Message) <= kBlockAlign);

// Positions are in block-alignment steps from the slab's start.
constexpr size_t kPositionBits = 16;
static_assert(size_class::kMostUnits.bytes() / kBlockAlign <= size_t{1} << kPositionBits);

struct Batch {
  Block *first, *last;
  unsigned count;
};

Message* encode(const Outgoing& out) {
  Message* message = reinterpret_cast<Message*>(out.last);
  uint64_t first = (address_of(out.first) - g_realm.address(out.slab)) / kBlockAlign;
  message->packed = first | static_cast<uint64_t>(out.count) << kPositionBits;
  return message;
}

Batch decode(Message* message, const Span* slab) {
  size_t first = (message->packed & 0xffff) * kBlockAlign;
  return {reinterpret_cast<Block*>(g_realm.address(slab) + first), reinterpret_cast<Block*>(message),
          static_cast<unsigned>(message->packed >> kPositionBits)};
}

// A block freed again while it waited in an inbox is no message any longer.
bool is_possible(const Batch& batch, const Span* slab) {
  uintptr_t start = g_realm.address(slab);
  auto is_block = [&](const Block* block) { return slab::is_block(slab, address_of(block) - start); };
  return batch.count != 0 && batch.count <= slab::outstanding(slab) && is_block(batch.first) && is_block(batch.last);
}

void push(std::atomic<Block*>& inbox, Message* message) {
  Block* first = inbox.load(std::memory_order_relaxed);
  do {
    schedule_point();
    message->next = reinterpret_cast<Message*>(first);
  } while (!inbox.compare_exchange_weak(first, reinterpret_cast<Block*>(message), std::memory_order_release,
                                        std::memory_order_relaxed));
}

// Gives how many bytes wait for the owner now.
size_t send(const Outgoing& out) {
  Heap* owner = out.owner;
  size_t bytes = out.count * size_t{slab::properties(out.slab).size};
  size_t before = owner->waiting.fetch_add(bytes, std::memory_order_relaxed);
  size_t steps = (before + bytes) / kCountedBytes - before / kCountedBytes;
  if (steps != 0) retained::add(steps * kCountedBytes);
  push(owner->inbox, encode(out));
  return before + bytes;
}

// Drains the owner's inbox in its stead, unless it is busy with its heap: then it will do so itself.
bool help(Heap* owner, const Heap* helper) {
  if (!owner->lock.try_acquire(helper->token.load())) return false;
  drain(owner, {helper->token.load(), false});
  owner->lock.release();
  return true;
}

// True when memory of the owner's may have become free, or much is held.
bool post(Heap* heap, Outgoing& out) {
  // A fork may find this thread anywhere here: better that the child loses the batch than that it has it twice.
  Outgoing sent = out;
  out = {};
  std::atomic_signal_fence(std::memory_order_release);
  if constexpr (kDebugChecks) books::check_outgoing(sent);
  heap->remote_frees.add(sent.count);
  heap->remote_batches.add(1);
  if (sent.owner == &abandoned::g_leaked) return false;
  size_t waiting = send(sent);
  return (waiting >= kHelpFromBytes && help(sent.owner, heap)) || retained::is_much();
}

Outgoing& slot_of(Heap* heap, const Span* slab) {
  size_t index = address_of(slab) / sizeof(Span);
  return heap->outgoing[(index ^ index / Heap::kOutgoing) % Heap::kOutgoing];
}

}  // namespace

bool free_remote(Heap* heap, Span* slab, Block* block) {
  if (heap == nullptr) {
    // No memory for a heap of this thread's own: the block travels alone.
    block->next = slab::batch_end();
    send({slab, owner_of(slab), block, block, 1});
    return false;
  }
  bool notable = false;
  Outgoing& out = slot_of(heap, slab);
  if (out.slab != slab) {
    if (out.first != nullptr) notable = post(heap, out);
    out.slab = slab;
    out.owner = owner_of(slab);
    out.last = block;
  }
  if (RH_UNLIKELY(block == out.first)) fail_invalid("free", block);
  block->next = out.first != nullptr ? out.first : slab::batch_end();
  // A fork may find this thread here: the chain is whole at every step (abandoned.cpp counts it again).
  std::atomic_signal_fence(std::memory_order_release);
  out.first = block;
  ++out.count;
  if (out.count * size_t{slab::properties(slab).size} >= kBatchBytes) notable |= post(heap, out);
  return notable;
}

// What a batch holds back could outlive such a heap, and the memory be another's by then.
bool free_alone(Heap* heap, Span* slab, Block* block) {
  Heap* owner = owner_of(slab);
  if (RH_UNLIKELY(owner->inbox.load(std::memory_order_relaxed) == block)) fail_invalid("free", block);
  size_t waiting = send({slab, owner, block, block, 1});
  if (heap == nullptr) return false;
  heap->remote_frees.add(1);
  heap->remote_batches.add(1);
  return (waiting >= kHelpFromBytes && help(owner, heap)) || retained::is_much();
}

void post_all(Heap* heap) {
  for (Outgoing& out : heap->outgoing)
    if (out.first != nullptr) post(heap, out);
}

Block* take_inbox(Heap* heap) {
  schedule_point();
  Block* inbox = heap->inbox.exchange(nullptr, std::memory_order_acquire);
  if (inbox == nullptr) return nullptr;
  size_t waited = heap->waiting.exchange(0, std::memory_order_relaxed);
  if (waited >= kCountedBytes) retained::subtract(align_down(waited, kCountedBytes));
  return inbox;
}

void drain(Heap* heap, Caller caller) {
  Message* message = reinterpret_cast<Message*>(take_inbox(heap));
  if (message == nullptr) return;
  prefetch_to_write(message);
  if (heap->stripped.load(std::memory_order_relaxed)) heap->stripped.store(false, std::memory_order_relaxed);
  while (message != nullptr) {
    // A block freed twice leads to where it was booked the first time; one of a heap that was reset is nobody's.
    if (RH_UNLIKELY(!g_realm.holds(message))) fail_invalid("free", message);
    Message* next = message->next;
    if (next != nullptr) prefetch_to_write(next);
    Span* slab = slab::head(g_realm.span_of(message));
    Heap* owner = owner_of(slab);
    if (RH_UNLIKELY(owner == nullptr)) fail_invalid("free", message);
    Batch batch = decode(message, slab);
    if (owner == heap) {
      if (!is_possible(batch, slab)) fail_invalid("free", message);
      slab::give_back(slab, batch.first, batch.last, batch.count);
      review(heap, slab, caller);
    } else {
      send({slab, owner, batch.first, batch.last, batch.count});  // adopted by another heap meanwhile
    }
    message = next;
  }
  if constexpr (kDebugChecks) books::check(heap);
}

}  // namespace rh
