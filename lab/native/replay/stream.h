// Reads one thread's operations through a window of one chunk.
#pragma once

#include <cstdint>
#include <cstring>

#include "replay/compiled.h"
#include "replay/system.h"

namespace lab {

struct Operation {
  compiled::Kind kind;
  bool remote;
  std::uint8_t alignment_log2;
  std::uint32_t touched;      // KiB; kTouchUnknown: all
  std::uint32_t old_touched;  // of a realloc
  std::uint32_t generation;   // to wait for, when remote
  std::uint64_t slot;
  std::uint64_t size;      // of a free: what the block has
  std::uint64_t old_size;  // of a realloc
  std::uint64_t amount;    // of kEpoch and kAt
};

class Stream {
 public:
  // `window` holds compiled::kChunkBytes. Nothing is read before the first `next`.
  Stream(sys::File file, std::uint64_t first_chunk, std::uint8_t* window)
      : file_(file), next_chunk_(first_chunk), window_(window) {}

  // The next operation; kEnd for ever after the last. False: the file is damaged there.
  bool next(Operation& operation);

  bool verify_checksums = false;
  std::uint64_t chunk_offset() const { return chunk_; }

 private:
  bool load();
  std::uint64_t size_and_touch(std::uint32_t& touched);
  void decode(Operation& operation);

  sys::File file_;
  std::uint64_t next_chunk_;
  std::uint64_t chunk_ = 0;
  std::uint8_t* window_;
  const std::uint8_t* at_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  std::uint64_t slot_ = 0;
};

// Here for speed: reading is a good part of what a replay costs beside the allocator.

inline std::uint64_t Stream::size_and_touch(std::uint32_t& touched) {
  std::uint64_t size;
  at_ = compiled::get_varint(at_, size);
  touched = compiled::kTouchUnknown;
  if (size >= compiled::kLargeBlock) {
    std::memcpy(&touched, at_, sizeof touched);
    at_ += sizeof touched;
  }
  return size;
}

inline void Stream::decode(Operation& operation) {
  const std::uint8_t first = *at_++;
  operation.kind = static_cast<compiled::Kind>(first & 0xf);
  operation.remote = (first & compiled::kRemote) != 0;
  if (operation.kind == compiled::Kind::kEnd) return;
  std::uint64_t value;
  at_ = compiled::get_varint(at_, value);
  if (operation.kind == compiled::Kind::kEpoch || operation.kind == compiled::Kind::kAt) {
    operation.amount = value;
    return;
  }
  slot_ += static_cast<std::uint64_t>(compiled::unzigzag(value));
  operation.slot = slot_;
  operation.size = size_and_touch(operation.touched);
  if (operation.kind == compiled::Kind::kRealloc) {
    operation.old_size = operation.size;
    operation.old_touched = operation.touched;
    operation.size = size_and_touch(operation.touched);
  } else if (operation.kind == compiled::Kind::kAligned) {
    operation.alignment_log2 = *at_++;
  }
  if (!operation.remote) return;
  at_ = compiled::get_varint(at_, value);
  operation.generation = static_cast<std::uint32_t>(value);
}

inline bool Stream::next(Operation& operation) {
  while (at_ == end_) {
    if (next_chunk_ == 0) {
      operation.kind = compiled::Kind::kEnd;
      return true;
    }
    if (!load()) return false;
  }
  decode(operation);
  return at_ <= end_;
}

}  // namespace lab
