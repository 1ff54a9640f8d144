// The compiled form of a trace: what reheap-replay runs. Written by `reheap-trace compile`.
//
// A header, then chunks of kChunkBytes. Each thread's operations are a chain of chunks, so that one window of one chunk
// is all a replaying thread needs. Numbers are little-endian; "varint" is LEB128, "zigzag" its signed form.
//
// Blocks have no addresses here but slots. A slot is used again by the thread that freed its last block, or, long after
// that, by any; an operation on a slot that another thread had last names its generation, and waits for it. That is all
// the order there is, and the program had it too. Epochs tell how far ahead a thread is of the others: one ends when
// `epoch_bytes` were allocated or freed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lab::compiled {

inline constexpr char kMagic[8] = {'R', 'E', 'H', 'E', 'A', 'P', 'O', 'P'};
inline constexpr std::uint32_t kVersion = 2;
inline constexpr std::size_t kChunkBytes = 32 * 1024;

// Blocks from here on carry how much of them was touched: the size below which a recorder does not look.
inline constexpr std::uint64_t kLargeBlock = 128 * 1024;
inline constexpr std::uint32_t kTouchUnknown = 0xffffffff;

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint64_t threads;
  std::uint64_t thread_table;  // where `threads` records of Thread lie, in the order of their first epoch
  std::uint64_t slots;
  std::uint64_t operations;
  std::uint64_t remote;  // operations on a block that another thread made
  std::uint64_t peak_live_bytes;
  std::uint64_t peak_live_blocks;
  std::uint64_t epochs;
  std::uint64_t epoch_bytes;
  std::uint64_t duration_ns;
  std::uint64_t file_bytes;
  std::uint32_t most_threads;  // at the same time
  std::uint32_t checksum;      // of all above, and of the thread table (crc32c)
};

struct Thread {
  std::uint64_t first_chunk;
  std::uint64_t first_epoch;
  std::uint64_t last_epoch;
  std::uint64_t operations;
};

struct ChunkHeader {
  std::uint32_t magic;  // kChunkMagic
  std::uint32_t used;   // bytes of operations
  std::uint64_t next;   // where the thread's next chunk lies; 0: there is none
  std::uint32_t thread;
  std::uint32_t checksum;  // crc32c of the operations
};
inline constexpr std::uint32_t kChunkMagic = 0x4b4e4843;
inline constexpr std::size_t kChunkPayload = kChunkBytes - sizeof(ChunkHeader);

// The longest operation; none spans two chunks.
inline constexpr std::size_t kLongestOperation = 64;

// An operation: one byte of kind, then what stands behind it.
enum class Kind : std::uint8_t {
  kEnd,      // of the thread
  kEpoch,    // varint: how many epochs on
  kAt,       // varint: nanoseconds since the last kAt, for the recorded pace
  kMalloc,   // slot, size [, touched]
  kCalloc,   // slot, size [, touched]
  kAligned,  // slot, size [, touched], one byte: log2 of the alignment
  kFree,     // slot, size [, touched]
  kRealloc,  // slot, old size [, old touched], new size [, touched]
};
// Bit 4: another thread had the slot last; a varint follows at the end, the generation to wait for.
inline constexpr std::uint8_t kRemote = 0x10;
// slot: zigzag, from the slot of the thread's operation before. size: varint.
// touched: four bytes, KiB from the block's start, where the size is kLargeBlock or more.

inline const std::uint8_t* get_varint(const std::uint8_t* at, std::uint64_t& value) {
  value = *at & 0x7f;
  for (unsigned shift = 7; *at++ & 0x80; shift += 7) value |= std::uint64_t{*at & 0x7fu} << shift;
  return at;
}

inline std::uint8_t* put_varint(std::uint8_t* at, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) *at++ = static_cast<std::uint8_t>(value | 0x80);
  *at++ = static_cast<std::uint8_t>(value);
  return at;
}

inline std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
inline std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>((value >> 1) ^ (0 - (value & 1)));
}

}  // namespace lab::compiled
