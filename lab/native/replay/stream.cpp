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

}  // namespace lab
