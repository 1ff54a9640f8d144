// One thread's place in the trace, and the few instructions that every allocation call of the program pays for.
//
//   allocated / freed …  → record ─┬─ room in the chunk: encode in place, publish `used`
//                                  └─ else record_slowly (recorder.cpp): no stream yet, chunk full, nested in a
//                                     signal's handler, recording stopped, or a forked child's first event
#pragma once

#include <atomic>

#include "clock.h"
#include "thread_slot.h"
#include "trace/events.h"

namespace recorder {

// An event that a signal's handler caused while its thread was writing another.
inline constexpr uint32_t kMostPending = 8;

// Lies in memory that a forked child finds zeroed: there `cursor < limit` is false, and the child begins anew.
struct Stream {
  uint8_t* cursor;
  uint8_t* limit;  // nothing begins here or beyond; null while an event is being written
  uint8_t* room;   // what `limit` is between events; null when nothing may be written
  trace::Base base;
  trace::ChunkHeader* chunk;
  uint32_t events;  // in this chunk
  uint32_t pending_count;
  uint32_t number;
  uint32_t sequence;  // of the next chunk
  uint32_t thread;
  Stream* next_idle;
  trace::Event pending[kMostPending];
};

// Room kept at a chunk's end. Several events: a handler may fill up what its thread had just found to be enough.
inline constexpr size_t kSlack = 4 * trace::kMostEventBytes;

void record_slowly(trace::Event event);
void record_pending(Stream& stream);

// ---- stacks -----------------------------------------------------------------------------------
//
// The system's part chooses allocations before they are recorded. It then writes notes, which describe the stack, keeps
// the stack's number, and holds up the stream, so that the event comes the slow way, which asks for that number. All
// other events pay nothing.

// Of the stack of this allocation, if it was chosen; else 0. Asked once.
using TakeStack = uint32_t(const trace::Event& event);

struct StackSource {
  TakeStack* take;       // null: no stacks are recorded
  uint32_t every_bytes;  // as FileHeader::stack_bytes
};

// Where this thread may write notes. Null where nothing is recorded, and in a handler while an event is being written.
Stream* stream_for_notes();

// Writes what describes stacks; quiet. A note has no time: it takes that of the event before it. `texts` are the bytes
// that it needs beyond an event's. False when it cannot be written.
bool write_note(Stream& stream, const trace::Event& note, size_t texts = 0);

inline uint8_t* payload(trace::ChunkHeader* chunk) { return reinterpret_cast<uint8_t*>(chunk + 1); }

inline void signal_fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

// Writes an event where there is room for it. What it needs of the stream is read behind the first fence, because a
// handler may have moved it on until then.
[[gnu::always_inline]] inline void put(Stream& stream, const trace::Event& event) {
  stream.limit = nullptr;
  signal_fence();
  trace::Encoder encoder(stream.cursor, stream.base);
  encoder.put(event);
  stream.cursor = encoder.end();
  ++stream.events;
  signal_fence();
  stream.chunk->used = static_cast<uint32_t>(encoder.end() - payload(stream.chunk));
  signal_fence();
  stream.limit = stream.room;
  signal_fence();
  if (stream.pending_count != 0) [[unlikely]]
    record_pending(stream);
}

inline void hold_up(Stream& stream) { stream.limit = payload(stream.chunk); }

[[gnu::always_inline]] inline void record(const trace::Event& event) {
  Stream& stream = *current_stream();
  if (stream.cursor < stream.limit) [[likely]]
    put(stream, event);
  else
    record_slowly(event);
}

// ---- what a program did -----------------------------------------------------------------------

// Which pages large blocks begin in: a free elsewhere is of a small block, and nothing is asked about it.
inline constinit std::atomic<uint64_t> g_large_pages[1024];

inline std::atomic<uint64_t>& large_word(uint64_t address) { return g_large_pages[(address >> 18) & 1023]; }
inline uint64_t large_bit(uint64_t address) { return uint64_t{1} << ((address >> 12) & 63); }

inline bool may_be_large(uint64_t address) {
  return large_word(address).load(std::memory_order_relaxed) & large_bit(address);
}

inline void note_size(uint64_t address, uint64_t size) {
  if (size >= trace::kMeasuredBytes) [[unlikely]]
    large_word(address).fetch_or(large_bit(address), std::memory_order_relaxed);
}

// After an allocating call returned a block.
[[gnu::always_inline]] inline void allocated(trace::Kind kind, const void* block, uint64_t size,
                                             uint64_t alignment = 0) {
  auto address = reinterpret_cast<uintptr_t>(block);
  note_size(address, size);
  record({.kind = kind, .time = ticks_now(), .address = address, .size = size, .alignment = alignment});
}

// Before a block is given back; `time` is from before the call.
[[gnu::always_inline]] inline void freed(const void* block, uint64_t time) {
  record({.kind = trace::Kind::kFree, .time = time, .address = reinterpret_cast<uintptr_t>(block)});
}

inline void freed_measured(const void* block, uint64_t time, uint64_t resident_kib) {
  record({.kind = trace::Kind::kFreeMeasured,
          .time = time,
          .address = reinterpret_cast<uintptr_t>(block),
          .resident_kib = resident_kib});
}

// After a realloc that began at `begin` and returned a block.
inline void reallocated(uint64_t begin, const void* old_block, const void* block, uint64_t size) {
  auto address = reinterpret_cast<uintptr_t>(block);
  note_size(address, size);
  record({.kind = trace::Kind::kRealloc,
          .time = ticks_now(),
          .begin = begin,
          .address = address,
          .old_address = reinterpret_cast<uintptr_t>(old_block),
          .size = size});
}

inline void failed(trace::Kind asked, uint64_t size) {
  record({.kind = trace::Kind::kFailed, .asked = asked, .time = ticks_now(), .size = size});
}

}  // namespace recorder
