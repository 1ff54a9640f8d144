// Reads trace files as one row of events in the order of time, with one chunk per stream in memory.
//
// What is damaged is left out and told: a chunk that does not hold what its checksum says, a file that ends too early.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trace/byte_file.h"
#include "trace/events.h"
#include "trace/flat_map.h"
#include "trace/format.h"

namespace trace {

// What could not be read, in words; the first few, and how many.
struct Damage {
  std::vector<std::string> told;
  uint64_t count = 0;
  void add(std::string what);
};

// A file that is no trace at all, or of another version: nothing of it can be read.
struct Unreadable {
  std::string what;
};

// One file: its header, and where its chunks are.
class File {
 public:
  struct Chunk {
    uint64_t offset;
    Moment begin;
  };

  File(const std::string& path, Damage& damage);

  const std::string& path() const { return path_; }
  const FileHeader& header() const { return header_; }
  uint64_t bytes() const { return bytes_; }
  size_t chunks() const { return chunks_; }
  const std::vector<std::vector<Chunk>>& streams() const { return streams_; }

  // Nanoseconds of the monotonic clock.
  uint64_t nanoseconds(uint64_t ticks) const;
  // Into `buffer` of kChunkBytes; false: damaged, and told.
  bool load(const Chunk& chunk, uint8_t* buffer, Damage& damage);

 private:
  struct Place {
    uint32_t stream;
    uint32_t sequence;
    Chunk chunk;
  };

  void read_header(Damage& damage);
  void find_chunks(Damage& damage);
  void put_into_streams(std::vector<Place> found, Damage& damage);
  void set_rate();

  std::string path_;
  ByteFile in_;
  FileHeader header_{};
  uint64_t bytes_ = 0;
  size_t chunks_ = 0;
  size_t unwritten_ = 0;  // places of chunks that hold nothing
  std::vector<std::vector<Chunk>> streams_;
  double rate_ = 1;  // nanoseconds in a tick
};

// A thing that happened to the heap. A realloc that moves or resizes is two: kReleased at its begin, kAcquired at its
// end.
struct Step {
  enum class What { kAcquired, kReleased, kFailed, kThreadStart, kThreadEnd };
  What what;
  bool resized;     // one half of a realloc
  uint32_t thread;  // of all files, from 0
  uint32_t process;
  uint64_t time;     // nanoseconds of the monotonic clock
  uint64_t address;  // unlike that of any other process
  uint64_t size;
  uint64_t event_number;
  const Event* event;
};

// Unlike addresses for unlike processes: user space ends below this bit.
inline constexpr unsigned kProcessShift = 48;

// Takes what a file says of its stacks: for the whole file, and not always before it is used.
class Notes {
 public:
  virtual ~Notes() = default;
  // What `note` points to holds until the return.
  virtual void take(uint32_t process, const Event& note) = 0;
};

class Merge {
 public:
  // Without `notes`, what is said of stacks is passed over.
  Merge(std::vector<std::unique_ptr<File>>& files, Damage& damage, Notes* notes = nullptr);

  // False at the end. `step.event` holds until the next call.
  bool next(Step& step);

  uint64_t events() const { return events_; }
  uint32_t threads() const { return static_cast<uint32_t>(threads_.size()); }
  uint64_t begin() const { return begin_; }
  // An address of a file's, unlike those of any other process.
  uint64_t apart(uint32_t process, uint64_t address);

  struct Thread {
    uint32_t process;
    uint32_t number;
  };
  const Thread& thread(uint32_t index) const { return threads_[index]; }

 private:
  struct Cursor {
    uint32_t process;
    const std::vector<File::Chunk>* chunks;
    size_t next_chunk = 0;
    std::vector<uint8_t> buffer;
    std::optional<Decoder> decoder;
    Event event{};
    uint64_t number = 0;
    bool second_half = false;  // of a realloc
  };
  struct Entry {
    uint64_t time;
    bool acquires;  // at one time, what releases comes first
    uint32_t cursor;
    bool operator<(const Entry& other) const {
      if (time != other.time) return time > other.time;
      if (acquires != other.acquires) return acquires;
      return cursor > other.cursor;
    }
  };

  void queue_chunk(uint32_t index);
  void queue_event(uint32_t index);
  bool decode(Cursor& cursor);
  bool open_chunk(Cursor& cursor);
  bool fill(const Cursor& cursor, Step& step);
  uint32_t thread_index(uint32_t process, uint32_t number);

  std::vector<std::unique_ptr<File>>& files_;
  Damage& damage_;
  Notes* notes_;
  std::vector<Cursor> cursors_;
  std::vector<Entry> queue_;  // a heap
  std::vector<std::vector<uint32_t>> thread_of_;
  std::vector<Thread> threads_;
  FlatMap<uint64_t> spaces_;  // the numbers of processes, by file and by the number that the file has for it
  uint64_t events_ = 0;
  uint64_t begin_ = 0;
  uint32_t current_ = 0;
  bool pending_ = false;  // `current_` is out of the queue
};

std::vector<std::unique_ptr<File>> open_files(const std::vector<std::string>& paths, Damage& damage);

// Of all files together: events lost, the worst reason to stop early, whether each process ran to its end; the rest 0.
Progress missing_of(const std::vector<std::unique_ptr<File>>& files);

}  // namespace trace
