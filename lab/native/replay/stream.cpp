#include "replay/stream.h"

#include <cstring>

#include "trace/crc32c.h"

namespace lab {

using namespace compiled;

bool Stream::load() {
  chunk_ = next_chunk_;
  const std::int64_t got = sys::read_at(file_, window_, kChunkBytes, chunk_);
  ChunkHeader header;
  if (got < static_cast<std::int64_t>(sizeof header)) return false;
  std::memcpy(&header, window_, sizeof header);
  if (header.magic != kChunkMagic || header.used > kChunkPayload ||
      got < static_cast<std::int64_t>(sizeof header + header.used))
    return false;
  at_ = window_ + sizeof header;
  end_ = at_ + header.used;
  next_chunk_ = header.next;
  return !verify_checksums || trace::crc32c(at_, header.used) == header.checksum;
}

std::uint64_t Stream::size_and_touch(std::uint32_t& touched) {
  std::uint64_t size;
  at_ = get_varint(at_, size);
  touched = kTouchUnknown;
  if (size >= kLargeBlock) {
    std::memcpy(&touched, at_, sizeof touched);
    at_ += sizeof touched;
  }
  return size;
}

void Stream::decode(Operation& operation) {
  const std::uint8_t first = *at_++;
  operation.kind = static_cast<Kind>(first & 0xf);
  operation.remote = (first & kRemote) != 0;
  if (operation.kind == Kind::kEnd) return;
  std::uint64_t value;
  at_ = get_varint(at_, value);
  if (operation.kind == Kind::kEpoch || operation.kind == Kind::kAt) {
    operation.amount = value;
    return;
  }
  slot_ += static_cast<std::uint64_t>(unzigzag(value));
  operation.slot = slot_;
  operation.size = size_and_touch(operation.touched);
  if (operation.kind == Kind::kRealloc) {
    operation.old_size = operation.size;
    operation.old_touched = operation.touched;
    operation.size = size_and_touch(operation.touched);
  } else if (operation.kind == Kind::kAligned) {
    operation.alignment_log2 = *at_++;
  }
  if (!operation.remote) return;
  at_ = get_varint(at_, value);
  operation.generation = static_cast<std::uint32_t>(value);
}

bool Stream::next(Operation& operation) {
  while (at_ == end_) {
    if (next_chunk_ == 0) {
      operation.kind = Kind::kEnd;
      return true;
    }
    if (!load()) return false;
  }
  decode(operation);
  return at_ <= end_;
}

}  // namespace lab
