#include "trace/writer.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "trace/crc32c.h"

namespace trace {

Writer::Writer(const std::string& path, const FileHeader& like) : out_(path, "wb"), path_(path), header_(like) {
  header_.version = kVersion;
  header_.flags &= ~kStacks;
  header_.stack_bytes = 0;
  header_.clock = static_cast<uint32_t>(Clock::kNanoseconds);
  header_.begin.ticks = header_.begin.nanoseconds;
  if (!out_) throw std::runtime_error(path + ": cannot be written");
}

void Writer::begin_chunk(Stream& stream, uint32_t thread, uint64_t time) {
  if (!stream.buffer) stream.buffer = std::make_unique<uint8_t[]>(kChunkBytes + kMostEventBytes);
  stream.end = stream.buffer.get() + sizeof(ChunkHeader);
  stream.header = {.magic = kChunkMagic,
                   .state = static_cast<uint32_t>(ChunkState::kSealed),
                   .stream = thread,
                   .sequence = stream.next_sequence++,
                   .thread = thread,
                   .used = 0,
                   .events = 0,
                   .checksum = 0,
                   .begin = {time, time},
                   .last = time,
                   .unused = 0};
  stream.base = {time, 0};
}

void Writer::seal(Stream& stream) {
  uint8_t* payload = stream.buffer.get() + sizeof(ChunkHeader);
  stream.header.used = static_cast<uint32_t>(stream.end - payload);
  stream.header.last = stream.base.time;
  stream.header.checksum = crc32c(payload, stream.header.used, crc32c(&stream.header, sizeof stream.header));
  std::memcpy(stream.buffer.get(), &stream.header, sizeof stream.header);
  std::memset(stream.end, 0, kPayloadBytes - stream.header.used);
  const uint64_t offset = kHeaderBytes + header_.progress.chunks * kChunkBytes;
  if (!out_.write(offset, stream.buffer.get(), kChunkBytes))
    throw std::runtime_error(path_ + ": cannot be written: is the disk full?");
  ++header_.progress.chunks;
}

void Writer::add(const Event& event) {
  if (event.thread >= streams_.size()) streams_.resize(event.thread + 1);
  Stream& stream = streams_[event.thread];
  const bool full = stream.buffer && stream.end + kMostEventBytes > stream.buffer.get() + kChunkBytes;
  if (full) seal(stream);
  if (full || !stream.buffer) begin_chunk(stream, event.thread, event.begin);
  Encoder encoder(stream.end, stream.base);
  encoder.put(event);
  stream.end = encoder.end();
  ++stream.header.events;
  ++events_;
}

void Writer::end_thread(uint32_t thread) {
  if (thread >= streams_.size() || !streams_[thread].buffer) return;
  seal(streams_[thread]);
  streams_[thread].buffer.reset();
}

void Writer::finish(uint64_t end) {
  for (uint32_t i = 0; i < streams_.size(); ++i) end_thread(i);
  header_.progress.latest = {end, end};
  header_.checksum = crc32c(&header_, offsetof(FileHeader, checksum));
  const bool written = out_.write(0, &header_, sizeof header_);
  if (!out_.close() || !written) throw std::runtime_error(path_ + ": cannot be written: is the disk full?");
}

}  // namespace trace
