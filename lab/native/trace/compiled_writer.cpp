#include "trace/compiled_writer.h"

#include <cstddef>
#include <cstring>
#include <stdexcept>

#include "trace/crc32c.h"

namespace trace {

using namespace lab::compiled;

namespace {

constexpr uint64_t kFirstChunk = 4096;

size_t index_of(uint64_t offset) { return static_cast<size_t>((offset - kFirstChunk) / lab::compiled::kChunkBytes); }

}  // namespace

CompiledWriter::CompiledWriter(const std::string& path) : out_(path, "w+b"), path_(path), free_offset_(kFirstChunk) {
  if (!out_) throw std::runtime_error(path + ": cannot be written");
}

void CompiledWriter::write(uint64_t offset, const void* data, size_t bytes) {
  if (!out_.write(offset, data, bytes)) throw std::runtime_error(path_ + ": cannot be written: is the disk full?");
}

void CompiledWriter::begin_chunk(Stream& stream, uint64_t offset) {
  stream.chunk = offset;
  stream.end = stream.buffer.get() + sizeof(lab::compiled::ChunkHeader);
  free_offset_ = offset + lab::compiled::kChunkBytes;
  open_.resize(index_of(free_offset_), nullptr);
  patched_.resize(index_of(free_offset_), false);
  open_[index_of(offset)] = &stream;
}

void CompiledWriter::write_chunk(Stream& stream, uint64_t next) {
  const uint8_t* payload = stream.buffer.get() + sizeof(lab::compiled::ChunkHeader);
  const auto used = static_cast<uint32_t>(stream.end - payload);
  const lab::compiled::ChunkHeader header{
      .magic = lab::compiled::kChunkMagic, .used = used, .next = next, .thread = 0, .checksum = crc32c(payload, used)};
  std::memcpy(stream.buffer.get(), &header, sizeof header);
  write(stream.chunk, stream.buffer.get(), sizeof header + used);
  open_[index_of(stream.chunk)] = nullptr;
}

void CompiledWriter::reopen(Stream& stream) {
  stream.buffer = std::make_unique<uint8_t[]>(lab::compiled::kChunkBytes);
  const uint32_t used = read_chunk(stream.chunk, stream.buffer.get());
  stream.end = stream.buffer.get() + sizeof(lab::compiled::ChunkHeader) + used;
  open_[index_of(stream.chunk)] = &stream;
}

CompiledWriter::Stream& CompiledWriter::room(uint32_t thread) {
  if (thread >= streams_.size()) streams_.resize(thread + 1);
  if (!streams_[thread]) {
    streams_[thread] = std::make_unique<Stream>();
    streams_[thread]->buffer = std::make_unique<uint8_t[]>(lab::compiled::kChunkBytes);
    streams_[thread]->first_chunk = free_offset_;
    begin_chunk(*streams_[thread], free_offset_);
  }
  Stream& stream = *streams_[thread];
  if (!stream.buffer) reopen(stream);  // what its other ends free comes after the thread's own
  if (stream.end + kLongestOperation > stream.buffer.get() + lab::compiled::kChunkBytes) {
    const uint64_t next = free_offset_;
    write_chunk(stream, next);
    begin_chunk(stream, next);
  }
  return stream;
}

uint64_t CompiledWriter::offset_of(uint32_t thread, const uint8_t* at) const {
  const Stream& stream = *streams_[thread];
  return stream.chunk + static_cast<uint64_t>(at - stream.buffer.get());
}

void CompiledWriter::patch(uint64_t offset, uint32_t value) {
  const size_t index = index_of(offset);
  if (const Stream* stream = open_[index]) {
    std::memcpy(stream->buffer.get() + (offset - stream->chunk), &value, sizeof value);
    return;
  }
  write(offset, &value, sizeof value);
  patched_[index] = true;
}

void CompiledWriter::end_thread(uint32_t thread) {
  if (thread >= streams_.size() || !streams_[thread] || !streams_[thread]->buffer) return;
  write_chunk(*streams_[thread], 0);
  streams_[thread]->buffer.reset();
}

uint32_t CompiledWriter::read_chunk(uint64_t offset, uint8_t* buffer) {
  lab::compiled::ChunkHeader header;
  const size_t got = out_.read(offset, buffer, lab::compiled::kChunkBytes);
  std::memcpy(&header, buffer, sizeof header);
  if (got < sizeof header + header.used) throw std::runtime_error(path_ + ": what was written cannot be read again");
  return header.used;
}

void CompiledWriter::seal_again(uint64_t offset) {
  uint8_t buffer[lab::compiled::kChunkBytes];
  lab::compiled::ChunkHeader header;
  const uint32_t used = read_chunk(offset, buffer);
  std::memcpy(&header, buffer, sizeof header);
  header.checksum = crc32c(buffer + sizeof header, used);
  write(offset, &header, sizeof header);
}

void CompiledWriter::finish(Header& header, const std::vector<Thread>& threads) {
  for (uint32_t i = 0; i < streams_.size(); ++i) end_thread(i);
  for (size_t i = 0; i < patched_.size(); ++i)
    if (patched_[i]) seal_again(kFirstChunk + i * lab::compiled::kChunkBytes);
  std::memcpy(header.magic, lab::compiled::kMagic, sizeof header.magic);
  header.version = lab::compiled::kVersion;
  header.header_bytes = sizeof header;
  header.threads = threads.size();
  header.thread_table = free_offset_;
  const size_t bytes = threads.size() * sizeof(Thread);
  header.file_bytes = header.thread_table + bytes;
  header.checksum = crc32c(threads.data(), bytes, crc32c(&header, offsetof(Header, checksum)));
  if (!threads.empty()) write(header.thread_table, threads.data(), bytes);  // else it has no address
  write(0, &header, sizeof header);
  if (!out_.close()) throw std::runtime_error(path_ + ": cannot be written: is the disk full?");
}

}  // namespace trace
