// Streams, chunks, threads and processes: everything that happens once in many events.
//
// A lock is taken only to give out and take back streams, that is when a thread begins or ends. Memory: one mapped
// chunk for each thread that lives, and the table of streams.

#include "recorder.h"

#include "stream.h"
#include "system.h"
#include "trace/crc32c.h"

namespace recorder {

using trace::Event;
using trace::Kind;
using trace::Stopped;

constinit Stream g_no_stream{};

namespace {

constexpr uint32_t kMostStreams = 32768;

// In memory that a fork wipes: the child finds `begun` false, the lock free and no stream in use.
struct Table {
  std::atomic<bool> begun;
  std::atomic<bool> locked;
  Stream* idle;  // of threads that have ended; their last chunk is open
  uint32_t used;
  Stream streams[kMostStreams];
};

constinit Table* g_table = nullptr;
constinit trace::FileHeader* g_header = nullptr;
constinit std::atomic<uint64_t> g_chunks = 0;
constinit std::atomic<uint32_t> g_threads = 0;
constinit std::atomic<bool> g_stopped = false;
constinit uint64_t g_process_generation = 0;
constinit StackSource g_stacks{};

class Lock {
 public:
  Lock() {
    while (g_table->locked.exchange(true, std::memory_order_acquire)) system::yield();
  }
  ~Lock() { g_table->locked.store(false, std::memory_order_release); }
};

// What is missing since the recording was stopped, nobody counts: that it was is told instead.
void count_lost() {
  if (g_header && !g_stopped) std::atomic_ref(g_header->progress.lost).fetch_add(1, std::memory_order_relaxed);
}

void stop(Stopped reason) {
  if (g_stopped.exchange(true)) return;
  g_header->progress.stopped = static_cast<uint32_t>(reason);
  system::say_stopped(reason);
}

trace::Moment moment() { return {ticks_now(), monotonic_nanoseconds()}; }

// ---- the process ------------------------------------------------------------------------------

constinit uint64_t g_cpu_begin = 0;  // 0: it has not begun

void note_times(trace::Progress& progress) {
  progress.latest = moment();
  progress.cpu_latest = system::cpu_nanoseconds();
}

void write_header(trace::FileHeader& header, trace::Moment begin, bool forked) {
  std::memcpy(header.magic, trace::kMagic, sizeof header.magic);
  header.version = g_stacks.take ? trace::kVersionWithStacks : trace::kVersion;
  header.chunk_bytes = trace::kChunkBytes;
  header.pointer_bytes = sizeof(void*);
  header.clock = static_cast<uint32_t>(g_counter ? trace::Clock::kProcessorTicks : trace::Clock::kNanoseconds);
  header.unix_nanoseconds = system::time_of_day_nanoseconds();
  header.begin = begin;
  if (forked) {
    header.flags |= trace::kForked;
    header.fork_ticks = system::fork_ticks() ? system::fork_ticks() : begin.ticks;
  }
  if (g_stacks.take) {
    header.flags |= trace::kStacks;
    header.stack_bytes = g_stacks.every_bytes;
  }
  std::memcpy(header.recorder, REHEAP_LAB_VERSION, sizeof REHEAP_LAB_VERSION);
  header.checksum = trace::crc32c(&header, offsetof(trace::FileHeader, checksum));
  header.progress.cpu_begin = forked ? 0 : g_cpu_begin ? g_cpu_begin : system::cpu_nanoseconds();
  note_times(header.progress);
}

// Begins the trace of this process: at its first event, and at the first of a forked child. Locked.
void begin_process() {
  bool forked = g_process_generation++ != 0;
  g_table->begun = true;
  g_stopped = false;
  g_chunks = 0;
  g_threads = 0;
  g_counter = system::even_counter();
  g_stacks = system::stack_source();
  trace::Moment begin = moment();
  g_header = system::open_trace();
  if (!g_header) {
    g_stopped = true;
    return;
  }
  write_header(*g_header, begin, forked);
}

bool begun() {
  if (!g_table) {
    if (!system::ready()) return false;
    g_table = static_cast<Table*>(system::memory_of_this_process(sizeof(Table)));
    if (!g_table) g_stopped = true;
  }
  if (g_table && !g_table->begun.load(std::memory_order_acquire)) {
    Lock lock;
    if (!g_table->begun) begin_process();
  }
  return !g_stopped;
}

// ---- chunks -----------------------------------------------------------------------------------

void open_chunk(Stream& stream) {
  stream.chunk->state = static_cast<uint32_t>(trace::ChunkState::kOpen);
  stream.room = payload(stream.chunk) + trace::kPayloadBytes - kSlack;
  stream.limit = stream.room;
}

// It is sealed last of all: a process that is killed before leaves an open chunk, in which all that was written counts.
void seal_chunk(Stream& stream) {
  trace::ChunkHeader& chunk = *stream.chunk;
  stream.limit = stream.room = nullptr;
  chunk.events = stream.events;
  chunk.last = stream.base.time;
  trace::ChunkHeader sealed = chunk;
  sealed.state = static_cast<uint32_t>(trace::ChunkState::kSealed);
  sealed.checksum = 0;
  chunk.checksum = trace::crc32c(payload(&chunk), chunk.used, trace::crc32c(&sealed, sizeof sealed));
  signal_fence();
  chunk.state = sealed.state;
}

bool sealed(const Stream& stream) { return stream.chunk->state == static_cast<uint32_t>(trace::ChunkState::kSealed); }

bool full(const Stream& stream, size_t texts = 0) {
  return stream.cursor + texts >= payload(stream.chunk) + trace::kPayloadBytes - kSlack;
}

// Those that are there: others may have been asked for, and not been had.
void tell_chunks(uint64_t count) {
  std::atomic_ref<uint64_t> told(g_header->progress.chunks);
  for (uint64_t before = told.load(std::memory_order_relaxed); before < count;)
    if (told.compare_exchange_weak(before, count, std::memory_order_relaxed)) return;
}

// Begins at `earliest`, the first event's beginning, not now: other threads' events of the time between must not
// come first.
bool new_chunk(Stream& stream, uint64_t earliest) {
  const uint64_t index = g_chunks.fetch_add(1, std::memory_order_relaxed);
  const uint64_t offset = g_header->header_bytes + index * trace::kChunkBytes;
  system::Chunk mapped{nullptr, Stopped::kLimit};
  if (offset + trace::kChunkBytes <= system::limit()) mapped = system::map_chunk(offset);
  if (!mapped.memory) {
    stop(mapped.reason);
    return false;
  }
  auto* chunk = static_cast<trace::ChunkHeader*>(mapped.memory);
  chunk->stream = stream.number;
  chunk->sequence = stream.sequence++;
  chunk->thread = stream.thread;
  note_times(g_header->progress);
  chunk->begin = {earliest < stream.base.time ? stream.base.time : earliest, g_header->progress.latest.nanoseconds};
  chunk->magic = trace::kChunkMagic;
  tell_chunks(index + 1);
  stream.chunk = chunk;
  stream.cursor = payload(chunk);
  stream.base = {chunk->begin.ticks, 0};
  stream.events = 0;
  open_chunk(stream);
  return true;
}

bool make_room(Stream& stream, uint64_t earliest, size_t texts = 0) {
  if (stream.chunk && !full(stream, texts)) {
    if (sealed(stream)) open_chunk(stream);
    return stream.room != nullptr;
  }
  if (stream.chunk) {
    if (!sealed(stream)) seal_chunk(stream);
    system::unmap_chunk(stream.chunk);
    stream.chunk = nullptr;
    stream.cursor = nullptr;
  }
  return new_chunk(stream, earliest);
}

// ---- events -----------------------------------------------------------------------------------

uint64_t beginning(const Event& event) { return event.kind == Kind::kRealloc ? event.begin : event.time; }

// Writes to a stream that is this thread's. Quiet.
void put_event(Stream& stream, const Event& event) {
  if (stream.cursor >= stream.limit && !make_room(stream, beginning(event))) return count_lost();
  put(stream, event);
}

// ---- streams of threads -----------------------------------------------------------------------

Stream* take_stream() {
  Lock lock;
  if (Stream* stream = g_table->idle) {
    g_table->idle = stream->next_idle;
    return stream;
  }
  if (g_table->used == kMostStreams) return nullptr;
  Stream* stream = &g_table->streams[g_table->used];
  stream->number = g_table->used++;
  return stream;
}

void give_back(Stream* stream) {
  Lock lock;
  stream->next_idle = g_table->idle;
  g_table->idle = stream;
}

void start_thread(Stream& stream, uint32_t thread, uint64_t time) {
  stream.thread = thread;
  put_event(stream, {.kind = Kind::kThreadStart, .thread = thread, .time = time});
}

void end_thread(Stream& stream) {
  put_event(stream, {.kind = Kind::kThreadEnd, .time = ticks_now()});
  give_back(&stream);
}

void begin_anew(ThreadSlot& slot) {
  slot.stream = &g_no_stream;
  slot.generation = g_process_generation;
  slot.number = 0;
  slot.ended = false;
}

// Null: there are too many.
Stream* begin_stream(uint64_t time) {
  ThreadSlot& slot = thread_slot();
  Stream* stream = take_stream();
  if (!stream) return nullptr;
  if (slot.generation != g_process_generation) begin_anew(slot);
  if (slot.number == 0) {
    slot.number = ++g_threads;
    g_header->progress.threads = g_threads;
  }
  start_thread(*stream, slot.number, time);
  if (slot.ended) return stream;
  slot.stream = stream;
  system::watch_thread();
  return stream;
}

// The first event of a thread, or one after it has ended.
void put_with_new_stream(const Event& event) {
  Stream* stream = begin_stream(beginning(event));
  if (!stream) return count_lost();
  put_event(*stream, event);
  if (thread_slot().ended) end_thread(*stream);
}

bool has_stream() {
  return thread_slot().generation == g_process_generation && current_stream() != &g_no_stream &&
         current_stream()->chunk;
}

// A thread that is in the middle of an event is told so by `room` without `limit`.
bool is_within_event(const Stream& stream) { return stream.room && !stream.limit; }

}  // namespace

void record_slowly(Event event) {
  Stream& stream = *current_stream();
  if (g_stacks.take) event.stack = g_stacks.take(event);
  if (is_within_event(stream)) {
    if (stream.pending_count == kMostPending) return count_lost();
    stream.pending[stream.pending_count++] = event;
    return;
  }
  if (stream.room && !full(stream)) return put(stream, event);  // it had been held up
  if (g_stopped && g_table && g_table->begun) return;
  system::Quiet quiet;
  uint64_t generation = g_process_generation;
  if (!begun()) return;
  // A process's very first event was timed before its clock was chosen and its trace begun.
  if (generation != g_process_generation) event.time = event.begin = ticks_now();
  if (has_stream())
    put_event(*current_stream(), event);
  else
    put_with_new_stream(event);
}

Stream* stream_for_notes() {
  Stream* stream = current_stream();
  if (is_within_event(*stream)) return nullptr;
  if (stream->room) return stream;
  if (g_stopped && g_table && g_table->begun) return nullptr;
  system::Quiet quiet;
  if (!begun() || thread_slot().ended) return nullptr;
  stream = has_stream() ? current_stream() : begin_stream(ticks_now());
  return stream && !g_stopped && make_room(*stream, ticks_now()) ? stream : nullptr;
}

bool write_note(Stream& stream, const Event& note, size_t texts) {
  if (g_stopped || !make_room(stream, note.time, texts)) return false;
  put(stream, note);
  --stream.events;
  return true;
}

void record_pending(Stream& stream) {
  system::Quiet quiet;
  uint32_t count = stream.pending_count;
  stream.pending_count = 0;
  for (uint32_t i = 0; i != count; ++i) put_event(stream, stream.pending[i]);
}

void process_started() {
  system::Quiet quiet;
  begun();
}

void thread_ended() {
  system::Quiet quiet;
  if (!g_table || !has_stream()) return;
  ThreadSlot& slot = thread_slot();
  Stream* stream = slot.stream;
  slot.stream = &g_no_stream;
  slot.ended = true;
  end_thread(*stream);
}

void process_began() { g_cpu_begin = system::cpu_nanoseconds(); }

void others_stopped() {
  if (g_table) g_table->locked.store(false, std::memory_order_release);
}

void process_ended() {
  system::Quiet quiet;
  if (!g_table || !g_table->begun || !g_header) return;
  if (has_stream() && !sealed(*current_stream())) seal_chunk(*current_stream());
  Lock lock;
  for (Stream* stream = g_table->idle; stream; stream = stream->next_idle)
    if (stream->chunk && !sealed(*stream)) seal_chunk(*stream);
  note_times(g_header->progress);
  g_header->progress.ended = 1;
}

// A child between vfork and exec has its parent's memory: what it says is not of that process.
void process_exits() {
  if (g_table && g_table->begun && g_header && g_header->process == system::process_id())
    g_header->progress.cpu_latest = system::cpu_nanoseconds();
}

}  // namespace recorder
