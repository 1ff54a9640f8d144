// Writes a trace file from events in the order of time: a stream for each thread, one chunk of each in memory. Stacks
// are left out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trace/byte_file.h"
#include "trace/events.h"
#include "trace/format.h"

namespace trace {

class Writer {
 public:
  // `like` gives what is told of the process, and of what is missing (missing_of); times are nanoseconds from here on.
  Writer(const std::string& path, const FileHeader& like);

  // `event.thread` is its stream; times in nanoseconds of the monotonic clock.
  void add(const Event& event);
  // The trace begins here; what is told of the time of day moves along.
  void begin_at(uint64_t time) {
    header_.unix_nanoseconds += time - header_.begin.nanoseconds;
    header_.begin = {time, time};
  }
  void end_thread(uint32_t thread);  // its chunk leaves memory until it goes on
  void finish(uint64_t end);

  uint64_t events() const { return events_; }

 private:
  struct Stream {
    std::unique_ptr<uint8_t[]> buffer;
    uint8_t* end = nullptr;
    ChunkHeader header{};
    uint32_t next_sequence = 0;
    Base base{};
  };

  void begin_chunk(Stream& stream, uint32_t thread, uint64_t time);
  void seal(Stream& stream);

  ByteFile out_;
  std::string path_;
  FileHeader header_;
  std::vector<Stream> streams_;
  uint64_t events_ = 0;
};

}  // namespace trace
