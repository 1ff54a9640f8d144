// The layout of a trace file: what `reheap record` writes and every tool reads. docs/trace-format.md explains it; the
// coding of the events within a chunk stands in events.h. All numbers are little-endian.
//
//   file    one FileHeader, then chunks of kChunkBytes, each at FileHeader::header_bytes + n * kChunkBytes
//   chunk   one ChunkHeader, then `used` bytes of events
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trace {

inline constexpr char kMagic[8] = {'R', 'E', 'H', 'E', 'A', 'P', 'T', 'R'};
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kVersionWithStacks = 2;  // has the kinds from kStack on, which readers of 1 do not know
inline constexpr uint32_t kHeaderBytes = 4096;
inline constexpr uint32_t kChunkBytes = 65536;
inline constexpr uint32_t kChunkMagic = 0x4b434852;  // "RHCK"

enum class Clock : uint32_t {
  kProcessorTicks = 1,  // the processor's time stamp counter, divided by 16
  kNanoseconds = 2,     // CLOCK_MONOTONIC or the like
};

enum class Stopped : uint32_t {
  kNot = 0,
  kLimit = 1,     // the file reached the size it was given
  kDiskFull = 2,  // no room for another chunk
  kFailed = 3,    // the file could not be opened or mapped again
};

// FileHeader::flags
inline constexpr uint32_t kForked = 1;  // began as the copy of `parent`: it may free blocks made there
inline constexpr uint32_t kStacks = 2;  // allocations chosen by `stack_bytes` have their call stack
// Whose calls are recorded; neither of them: the C library's, or in older files of Windows the C runtimes'.
inline constexpr uint32_t kRuntimes = 4;    // malloc and its relatives, of C runtimes
inline constexpr uint32_t kSystemHeap = 8;  // Windows' HeapAlloc and its relatives, where no C runtime's call made them

// One moment on both clocks. Two of them give the length of a tick.
struct Moment {
  uint64_t ticks;
  uint64_t nanoseconds;  // of the monotonic clock
};

// What changes while the process runs. Not covered by the header's checksum.
struct Progress {
  Moment latest;     // at the last chunk claimed, or at the end
  uint64_t chunks;   // claimed so far
  uint64_t lost;     // events that could not be written
  uint32_t stopped;  // Stopped
  uint32_t ended;    // 1: the process ran to its end; 0: it runs, was killed, or replaced itself
  uint32_t threads;  // that recorded anything so far
  uint32_t unused;
  uint64_t cpu_begin;   // processor time of the process before this program
  uint64_t cpu_latest;  // and at `latest`, or as it called _exit; both in nanoseconds, 0: not known
};

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint32_t chunk_bytes;
  uint32_t pointer_bytes;
  uint32_t page_bytes;
  uint32_t flags;
  uint32_t clock;  // Clock
  uint32_t command_bytes;
  uint64_t process;
  uint64_t parent;
  uint64_t unix_nanoseconds;  // the time of day at `begin`
  Moment begin;
  uint64_t fork_ticks;   // with kForked: when; blocks of the parent alive then are alive here
  char system[16];       // "linux", "windows"
  char recorder[16];     // its version
  char command[3824];    // each argument ends with NUL; cut off when longer
  uint32_t stack_bytes;  // with kStacks: so many bytes lie between two that have one, on average; 0: each has
  uint32_t checksum;     // CRC32C of all bytes before it
  Progress progress;
  char rest[kHeaderBytes - 3952 - sizeof(Progress)];
};
static_assert(offsetof(FileHeader, process) == 40);
static_assert(offsetof(FileHeader, command) == 120);
static_assert(offsetof(FileHeader, checksum) == 3948);
static_assert(offsetof(FileHeader, progress) == 3952);
static_assert(sizeof(FileHeader) == kHeaderBytes);

enum class ChunkState : uint32_t {
  kClaimed = 0,  // fresh from the file: nothing in it
  kOpen = 1,     // being written, or its process was killed: `used` bytes are whole events, no checksum
  kSealed = 2,   // complete: `events` and `checksum` hold
};

// A stream is a row of chunks written one after the other, by one thread at a time.
struct ChunkHeader {
  uint32_t magic;
  uint32_t state;     // ChunkState
  uint32_t stream;    // counted from 0
  uint32_t sequence;  // of this chunk within its stream, from 0
  uint32_t thread;    // that writes at its beginning; kThreadStart changes it
  uint32_t used;      // bytes of events; grows after each event is whole
  uint32_t events;    // when sealed
  uint32_t checksum;  // when sealed: CRC32C of this header with 0 here, then of the events
  Moment begin;       // the first event's time counts from here
  uint64_t last;      // when sealed: the last event's time
  uint64_t unused;
};
static_assert(sizeof(ChunkHeader) == 64);

inline constexpr uint32_t kPayloadBytes = kChunkBytes - uint32_t{sizeof(ChunkHeader)};

enum class Kind : uint8_t {
  kMalloc = 1,        // address, size
  kCalloc = 2,        // address, size (the product)
  kAligned = 3,       // address, size, alignment
  kFree = 4,          // address
  kFreeMeasured = 5,  // address, resident_kib: how much of a large block was in memory
  kRealloc = 6,       // old_address, address, size; released at `begin`, had again at `time`
  kFailed = 7,        // size, asked (the call's kind): it returned NULL and changed nothing
  kThreadStart = 8,   // thread: from here on this stream is written by it
  kThreadEnd = 9,     //
  kStack = 10,        // stack: of the allocation that follows; coded with it (Event::stack), never an event of its own
  kFrame = 11,        // stack, parent, module, address: the stack `parent`, and what it called
  kModule = 12,       // module, description: where code lies
};

// Whether it describes stacks for the whole file, and tells of nothing that happened.
constexpr bool is_note(Kind kind) { return kind >= Kind::kFrame; }

constexpr bool allocates(Kind kind) { return kind <= Kind::kAligned || kind == Kind::kRealloc; }

// The stack without frames; all others grow out of it. Nobody knows by which stack its allocations were made.
inline constexpr uint32_t kEmptyStack = 1;

// Blocks from here on are measured when they are freed.
inline constexpr uint64_t kMeasuredBytes = 128 * 1024;

// Executable memory, as long as its process has it.
struct ModuleDescription {
  uint64_t start{};
  uint64_t bytes{};
  uint64_t file_offset{};  // of `start`
  std::string_view build_id;
  std::string_view path;  // empty when it is of no file
};

struct Event {
  Kind kind{};
  Kind asked{};       // kFailed
  uint32_t thread{};  // filled in by the decoder for every kind
  uint64_t time{};    // ticks; of a release before the call, of an allocation after it
  uint64_t begin{};   // kRealloc: ticks before the call; else equal to time
  uint64_t address{};
  uint64_t old_address{};  // kRealloc
  uint64_t size{};
  uint64_t alignment{};     // kAligned: a power of two
  uint64_t resident_kib{};  // kFreeMeasured
  uint32_t stack{};         // of an allocation: by which it was made, 0 when that is not recorded; kFrame: defined
  uint32_t parent{};        // kFrame: less than `stack`
  uint32_t module{};        // kFrame, whose `address` counts from the module's start; kModule: defined
  const ModuleDescription* description{};  // kModule
};

}  // namespace trace
