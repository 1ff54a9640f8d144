#include "heap/remote.h"

#include "base/prefetch.h"
#include "heap/abandoned.h"
#include "heap/block.h"
#include "heap/books.h"
#include "heap/retained.h"
#include "heap/slab_lists.h"

namespace rh {

namespace {

// A batch goes into its owner's parcel when it holds this much, and a parcel is sent when it does.
constexpr size_t kEnough = 4096;

// With this much held back all is sent.
constexpr size_t kMostHeld = size_t{64} << 10;

// When this much waits for an owner, who sends more looks after the inbox itself: the owner may be asleep, or gone.
constexpr size_t kHelpFromBytes = size_t{1} << 20;

// What waits is counted as held back in such steps.
constexpr size_t kCountedBytes = size_t{64} << 10;

// A message is the last block of a batch, which the owner will link to those it has: one cache line of a batch is all
// that is written and read to pass it on. The first word links messages in the inbox, the second holds the rest instead
// of the mark.
struct Batch {
  Block *first, *last;
  unsigned count;
};

constexpr unsigned kPositionBits = 8 * sizeof(BlockPosition);

Block* encode(const Outgoing& out) {
  Block* message = slab::block_at(out.slab, out.last);
  message->mark = out.first | uint64_t{out.count} << kPositionBits;
  return message;
}

Batch decode(Block* message, Span* slab) {
  Block* first = slab::block_at(slab, static_cast<BlockPosition>(message->mark));
  return {first, message, static_cast<unsigned>(message->mark >> kPositionBits)};
}

// A block freed again while it waited in an inbox is no message any longer.
bool is_possible(const Batch& batch, const Span* slab) {
  uintptr_t start = g_realm.address(slab);
  auto is_block = [&](const Block* block) { return slab::is_block(slab, address_of(block) - start); };
  return batch.count != 0 && batch.count <= slab::outstanding(slab) && is_block(batch.first) && is_block(batch.last);
}

void push(std::atomic<Block*>& inbox, Block* first, Block* last) {
  Block* others = inbox.load(std::memory_order_relaxed);
  do {
    schedule_point();
    last->next = others;
  } while (!inbox.compare_exchange_weak(others, first, std::memory_order_release, std::memory_order_relaxed));
}

// Gives how many bytes wait for the owner now.
size_t send(const Parcel& parcel) {
  Heap* owner = parcel.owner;
  size_t before = owner->waiting.fetch_add(parcel.bytes, std::memory_order_relaxed);
  size_t steps = (before + parcel.bytes) / kCountedBytes - before / kCountedBytes;
  if (steps != 0) retained::add(steps * kCountedBytes);
  push(owner->inbox, parcel.first, parcel.last);
  return before + parcel.bytes;
}

size_t send_alone(const Outgoing& out) {
  Block* message = encode(out);
  return send({out.owner, message, message, out.bytes()});
}

Outgoing alone(Span* slab, const Block* block) {
  BlockPosition position = slab::position_of(slab, block);
  return {slab, owner_of(slab), position, position, 1};
}

// Drains the owner's inbox in its stead, unless it is busy with its heap: then it will do so itself. An owner that lets
// so much wait may sleep, and what comes after this be little that all slabs wait for: somebody is to look once more.
bool help(Heap* owner, const Heap* helper) {
  if (!owner->lock.try_acquire(helper->token.load())) return false;
  drain(owner, {helper->token.load(), false});
  owner->lock.release();
  retained::add_freed(kHelpFromBytes);
  return true;
}

// True when memory of the owner's may have become free, or much is held.
bool deliver(Heap* heap, Parcel& parcel) {
  // A fork may find this thread anywhere here: better that the child loses what is sent than that it has it twice.
  Parcel sent = parcel;
  parcel = {};
  std::atomic_signal_fence(std::memory_order_release);
  heap->held -= sent.bytes;
  if (sent.owner == &abandoned::g_leaked) return false;
  return (send(sent) >= kHelpFromBytes && help(sent.owner, heap)) || retained::is_much();
}

Parcel& parcel_for(Heap* heap, const Heap* owner) {
  return heap->parcels[address_of(owner) / platform::kPageSize % Heap::kParcels];
}

// True as for deliver.
bool post(Heap* heap, Outgoing& out) {
  Outgoing sent = out;
  out.clear();
  std::atomic_signal_fence(std::memory_order_release);
  if constexpr (kDebugChecks) books::check_outgoing(sent);
  heap->remote_frees.add(sent.count);
  heap->remote_batches.add(1);
  Block* message = encode(sent);
  Parcel& parcel = parcel_for(heap, sent.owner);
  bool notable = parcel.first != nullptr && parcel.owner != sent.owner && deliver(heap, parcel);
  if (parcel.first == nullptr) {
    parcel.owner = sent.owner;
    parcel.last = message;
  }
  message->next = parcel.first;
  std::atomic_signal_fence(std::memory_order_release);
  parcel.first = message;
  parcel.bytes += sent.bytes();
  if (parcel.bytes >= kEnough) notable |= deliver(heap, parcel);
  return notable;
}

// Its line moves here once, not twice.
void mark_free(Span* slab, Block* block) {
  prefetch_to_write(block);
  slab::mark_free(slab, block);
}

Outgoing& slot_of(Heap* heap, const Span* slab) {
  size_t index = address_of(slab) / sizeof(Span);
  return heap->outgoing[(index ^ index / Heap::kOutgoing) % Heap::kOutgoing];
}

}  // namespace

bool free_remote(Heap* heap, Span* slab, Block* block) {
  if (heap == nullptr) {
    // No memory for a heap of this thread's own: the block travels alone.
    mark_free(slab, block);
    block->next = nullptr;
    send_alone(alone(slab, block));
    return false;
  }
  bool notable = false;
  Outgoing& out = slot_of(heap, slab);
  if (out.slab != slab) {
    if (!out.empty()) notable = post(heap, out);
    out.slab = slab;
    out.owner = owner_of(slab);
    out.last = slab::position_of(slab, block);
  }
  mark_free(slab, block);
  block->next = out.empty() ? nullptr : slab::block_at(slab, out.first);
  // A fork may find this thread here: the chain is whole at every step (abandoned.cpp counts it again).
  std::atomic_signal_fence(std::memory_order_release);
  out.first = slab::position_of(slab, block);
  ++out.count;
  size_t size = slab::properties(slab).size;
  heap->held += size;
  if (out.count * size >= kEnough) notable |= post(heap, out);
  return heap->held >= kMostHeld ? post_all(heap) || notable : notable;
}

// What a batch holds back could outlive such a heap, and the memory be another's by then.
bool free_alone(Heap* heap, Span* slab, Block* block) {
  Outgoing out = alone(slab, block);
  if (RH_UNLIKELY(out.owner->inbox.load(std::memory_order_relaxed) == block)) fail_invalid("free", block);
  mark_free(slab, block);
  size_t waiting = send_alone(out);
  if (heap == nullptr) return false;
  heap->remote_frees.add(1);
  heap->remote_batches.add(1);
  return (waiting >= kHelpFromBytes && help(out.owner, heap)) || retained::is_much();
}

bool post_all(Heap* heap) {
  bool notable = false;
  for (Outgoing& out : heap->outgoing)
    if (!out.empty()) notable |= post(heap, out);
  for (Parcel& parcel : heap->parcels)
    if (parcel.first != nullptr) notable |= deliver(heap, parcel);
  heap->held = 0;
  return notable;
}

void forget_leaked(Heap* heap) {
  auto is_leaked = [](const Span* slab) { return owner_of(slab) == &abandoned::g_leaked; };
  for (Outgoing& out : heap->outgoing)
    if (!out.empty() && is_leaked(out.slab)) out.clear();
  for (Parcel& parcel : heap->parcels) {
    Parcel all = parcel;
    parcel = {};
    for (Block *message = all.first, *next; message != nullptr; message = next) {
      next = message->next;
      if (is_leaked(slab::head(g_realm.span_of(message)))) continue;
      if (parcel.first == nullptr) parcel = {all.owner, nullptr, message, all.bytes};
      message->next = parcel.first;
      parcel.first = message;
    }
  }
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
  Block* message = take_inbox(heap);
  if (message == nullptr) return;
  prefetch_to_write(message);
  heap->stripped.clear();
  while (message != nullptr) {
    // A block freed twice leads to where it was booked the first time; one of a heap that was reset is nobody's.
    if (RH_UNLIKELY(!g_realm.holds(message))) fail_invalid("free", message);
    Block* next = message->next;
    if (next != nullptr) prefetch_to_write(next);
    Span* slab = slab::head(g_realm.span_of(message));
    Heap* owner = owner_of(slab);
    if (RH_UNLIKELY(owner == nullptr)) fail_invalid("free", message);
    Batch batch = decode(message, slab);
    if (owner == heap) {
      if (!is_possible(batch, slab)) fail_invalid("free", message);
      batch.last->mark = slab::mark_of(slab, batch.last);
      slab::give_back(slab, batch.first, batch.last, batch.count);
      review(heap, slab, caller);
    } else {
      send({owner, batch.last, batch.last, batch.count * size_t{slab::properties(slab).size}});  // adopted meanwhile
    }
    message = next;
  }
  if constexpr (kDebugChecks) books::check(heap);
}

}  // namespace rh
