// Writes the compiled form of a trace (replay/compiled.h): many threads' operations into one file, a chunk of each
// thread in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "replay/compiled.h"
#include "trace/byte_file.h"

namespace trace {

class CompiledWriter {
 public:
  explicit CompiledWriter(const std::string& path);

  // One operation; `put` writes it at the pointer it is given and returns its end.
  template <typename Put> void operation(uint32_t thread, Put put) {
    Stream& stream = room(thread);
    stream.end = put(stream.end);
  }
  // Where a byte of the operation under way will lie in the file.
  uint64_t offset_of(uint32_t thread, const uint8_t* at) const;
  // Changes four bytes written before, wherever they are now.
  void patch(uint64_t offset, uint32_t value);

  void end_thread(uint32_t thread);  // its chunk leaves memory
  uint64_t first_chunk(uint32_t thread) const { return streams_[thread]->first_chunk; }
  // Fills in what the writer knows of `header`: checksum, thread table, file's length.
  void finish(lab::compiled::Header& header, const std::vector<lab::compiled::Thread>& threads);

 private:
  struct Stream {
    uint64_t first_chunk = 0;
    uint64_t chunk = 0;
    std::unique_ptr<uint8_t[]> buffer;
    uint8_t* end = nullptr;
  };

  Stream& room(uint32_t thread);
  void begin_chunk(Stream& stream, uint64_t offset);
  void write_chunk(Stream& stream, uint64_t next);
  void write(uint64_t offset, const void* data, size_t bytes);
  void reopen(Stream& stream);
  uint32_t read_chunk(uint64_t offset, uint8_t* buffer);  // returns the bytes of operations
  void seal_again(uint64_t offset);

  ByteFile out_;
  std::string path_;
  std::vector<std::unique_ptr<Stream>> streams_;
  uint64_t free_offset_;       // where the next chunk begins
  std::vector<Stream*> open_;  // by chunk: who holds it in memory
  std::vector<bool> patched_;  // by chunk: changed since it was written
};

}  // namespace trace
