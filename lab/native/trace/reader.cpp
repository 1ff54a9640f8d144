#include "trace/reader.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "trace/crc32c.h"

namespace trace {
namespace {

std::string text(const char* format, uint64_t a, uint64_t b = 0) {
  char buffer[200];
  std::snprintf(buffer, sizeof buffer, format, static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
  return buffer;
}

}  // namespace

void Damage::add(std::string what) {
  constexpr size_t kMostTold = 20;
  ++count;
  if (told.size() < kMostTold) told.push_back(std::move(what));
}

// ---- one file ---------------------------------------------------------------------------------

File::File(const std::string& path, Damage& damage) : path_(path), in_(path, "rb") {
  if (!in_) throw Unreadable{path + ": cannot be opened"};
  bytes_ = in_.size();
  read_header(damage);
  find_chunks(damage);
  set_rate();
}

void File::read_header(Damage& damage) {
  in_.read(0, &header_, sizeof header_);
  if (bytes_ < sizeof kMagic || std::memcmp(header_.magic, kMagic, sizeof kMagic) != 0)
    throw Unreadable{path_ + ": is no trace: it does not begin as one made by `reheap record`"};
  if (header_.version != kVersion && header_.version != kVersionWithStacks)
    throw Unreadable{
        path_ + ": " +
        text("has version %llu of the format; this program reads 1 to %llu", header_.version, kVersionWithStacks)};
  if (bytes_ < sizeof header_) throw Unreadable{path_ + ": ends within its header"};
  if (crc32c(&header_, offsetof(FileHeader, checksum)) != header_.checksum)
    damage.add(path_ + ": the header does not match its checksum");
  // Not even one that matches may say otherwise: buffers have this length. Chunks are mapped, so the header is as long
  // as a page or, on Windows, as what a mapping begins at.
  const bool behind = header_.header_bytes >= kHeaderBytes && header_.header_bytes <= kChunkBytes;
  if (!behind || header_.chunk_bytes != kChunkBytes)
    throw Unreadable{path_ + ": the header is damaged: where the events lie is not known"};
}

void File::find_chunks(Damage& damage) {
  std::vector<Place> found;
  uint64_t offset = header_.header_bytes;
  for (; offset + sizeof(ChunkHeader) <= bytes_; offset += header_.chunk_bytes) {
    ChunkHeader chunk{};
    in_.read(offset, &chunk, sizeof chunk);
    if (chunk.magic == 0 && chunk.state == 0)
      ++unwritten_;  // the file grew, and nobody had claimed it; or it was lost, as when the system stops
    else if (chunk.magic != kChunkMagic || chunk.used > kPayloadBytes)
      damage.add(path_ + ": " + text("the chunk at offset %llu does not begin as one", offset));
    else if (chunk.state != static_cast<uint32_t>(ChunkState::kClaimed))
      found.push_back({chunk.stream, chunk.sequence, {offset, chunk.begin}});
  }
  const uint64_t claimed = header_.progress.chunks;
  if (header_.header_bytes + claimed * header_.chunk_bytes > bytes_)
    damage.add(path_ + ": " + text("ends after %llu of %llu chunks", found.size(), claimed));
  chunks_ = found.size();
  put_into_streams(std::move(found), damage);
}

// Nothing is known yet of whose checksum is right: a chunk with a wrong number must not take the place of another one.
void File::put_into_streams(std::vector<Place> found, Damage& damage) {
  std::stable_sort(found.begin(), found.end(), [](const Place& a, const Place& b) {
    return std::pair(a.stream, a.sequence) < std::pair(b.stream, b.sequence);
  });
  for (size_t i = 0; i < found.size(); ++i) {
    const bool first = i == 0 || found[i].stream != found[i - 1].stream;
    const uint32_t due = first ? 0 : found[i - 1].sequence + 1;
    if (first) streams_.emplace_back();
    streams_.back().push_back(found[i].chunk);
    if (found[i].sequence > due && unwritten_ != 0)  // else what is there in its place was told
      damage.add(path_ + ": " +
                 text("lacks chunk %llu of stream %llu: nothing was written there", due, found[i].stream));
  }
}

void File::set_rate() {
  constexpr double kUsualTick = 16 / 3.0;  // of a processor's counter at 3 GHz, divided by 16
  if (header_.clock == static_cast<uint32_t>(Clock::kNanoseconds)) return;
  const Moment& begin = header_.begin;
  const Moment& latest = header_.progress.latest;  // a chunk's own moment may be damaged
  const bool known = latest.ticks > begin.ticks && latest.nanoseconds > begin.nanoseconds;
  rate_ = known ? static_cast<double>(latest.nanoseconds - begin.nanoseconds) /
                      static_cast<double>(latest.ticks - begin.ticks)
                : kUsualTick;
}

uint64_t File::nanoseconds(uint64_t ticks) const {
  const Moment& begin = header_.begin;
  const double since = static_cast<double>(static_cast<int64_t>(ticks - begin.ticks)) * rate_;
  return begin.nanoseconds + static_cast<uint64_t>(static_cast<int64_t>(since));
}

bool File::load(const Chunk& chunk, uint8_t* buffer, Damage& damage) {
  const size_t got = in_.read(chunk.offset, buffer, header_.chunk_bytes);
  ChunkHeader header;
  std::memcpy(&header, buffer, sizeof header);
  if (got < sizeof header + header.used) {
    damage.add(path_ + ": " + text("ends within the chunk at offset %llu", chunk.offset));
    return false;
  }
  if (header.state != static_cast<uint32_t>(ChunkState::kSealed)) return true;
  const uint32_t told = header.checksum;
  header.checksum = 0;
  if (crc32c(buffer + sizeof header, header.used, crc32c(&header, sizeof header)) == told) return true;
  damage.add(path_ + ": " + text("the chunk at offset %llu does not match its checksum", chunk.offset));
  return false;
}

std::vector<std::unique_ptr<File>> open_files(const std::vector<std::string>& paths, Damage& damage) {
  std::vector<std::unique_ptr<File>> files;
  for (const std::string& path : paths) files.push_back(std::make_unique<File>(path, damage));
  return files;
}

Progress missing_of(const std::vector<std::unique_ptr<File>>& files) {
  Progress all{};
  all.ended = 1;
  for (const auto& file : files) {
    const Progress& progress = file->header().progress;
    all.lost += progress.lost;
    all.stopped = std::max(all.stopped, progress.stopped);
    all.ended = std::min(all.ended, progress.ended);
  }
  return all;
}

// ---- all of them in the order of time ---------------------------------------------------------

Merge::Merge(std::vector<std::unique_ptr<File>>& files, Damage& damage, Notes* notes)
    : files_(files), damage_(damage), notes_(notes), thread_of_(files.size()) {
  begin_ = UINT64_MAX;
  for (uint32_t process = 0; process < files.size(); ++process) {
    begin_ = std::min(begin_, files[process]->header().begin.nanoseconds);
    for (const auto& stream : files[process]->streams()) {
      if (stream.empty()) continue;
      cursors_.push_back({.process = process,
                          .chunks = &stream,
                          .next_chunk = 0,
                          .buffer = {},
                          .decoder = {},
                          .event = {},
                          .number = 0,
                          .second_half = false});
      queue_chunk(static_cast<uint32_t>(cursors_.size() - 1));
    }
  }
}

// A stream not begun waits in the queue without a buffer, no longer than for the earliest of its chunks: the first one
// may be damaged.
void Merge::queue_chunk(uint32_t index) {
  const Cursor& cursor = cursors_[index];
  uint64_t ticks = UINT64_MAX;
  for (const File::Chunk& chunk : *cursor.chunks) ticks = std::min(ticks, chunk.begin.ticks);
  queue_.push_back({files_[cursor.process]->nanoseconds(ticks), false, index});
  std::push_heap(queue_.begin(), queue_.end());
}

bool Merge::open_chunk(Cursor& cursor) {
  cursor.buffer.resize(kChunkBytes);
  while (cursor.next_chunk < cursor.chunks->size()) {
    const File::Chunk& chunk = (*cursor.chunks)[cursor.next_chunk++];
    if (!files_[cursor.process]->load(chunk, cursor.buffer.data(), damage_)) continue;
    ChunkHeader header;
    std::memcpy(&header, cursor.buffer.data(), sizeof header);
    cursor.decoder.emplace(header, cursor.buffer.data() + sizeof header, header.used);
    return true;
  }
  cursor.buffer = {};
  return false;
}

bool Merge::decode(Cursor& cursor) {
  if (!cursor.decoder && !open_chunk(cursor)) return false;
  for (;;) {
    const Decoder::Result result = cursor.decoder->next(cursor.event);
    if (result == Decoder::Result::kEvent) {
      if (!is_note(cursor.event.kind)) return true;
      if (notes_) notes_->take(cursor.process, cursor.event);
      continue;
    }
    if (result == Decoder::Result::kDamaged) {
      const uint64_t offset = (*cursor.chunks)[cursor.next_chunk - 1].offset;
      damage_.add(files_[cursor.process]->path() + ": " +
                  text("an event in the chunk at offset %llu cannot be read; what follows it "
                       "there is left out",
                       offset));
    }
    if (!open_chunk(cursor)) return false;
  }
}

void Merge::queue_event(uint32_t index) {
  Cursor& cursor = cursors_[index];
  const bool first_half = cursor.event.kind == Kind::kRealloc && !cursor.second_half;
  const uint64_t ticks = first_half ? cursor.event.begin : cursor.event.time;
  const bool releases = first_half || cursor.event.kind == Kind::kFree || cursor.event.kind == Kind::kFreeMeasured;
  queue_.push_back({files_[cursor.process]->nanoseconds(ticks), !releases, index});
  std::push_heap(queue_.begin(), queue_.end());
}

bool Merge::next(Step& step) {
  for (;;) {
    if (pending_) {
      Cursor& cursor = cursors_[current_];
      pending_ = false;
      if (cursor.decoder && cursor.event.kind == Kind::kRealloc && !cursor.second_half)
        cursor.second_half = true;
      else if (cursor.second_half = false; decode(cursor))
        cursor.number = events_++;
      else
        continue;
      queue_event(current_);
    }
    if (queue_.empty()) return false;
    std::pop_heap(queue_.begin(), queue_.end());
    const Entry entry = queue_.back();
    queue_.pop_back();
    current_ = entry.cursor;
    pending_ = true;
    Cursor& cursor = cursors_[current_];
    if (!cursor.decoder) continue;  // its first chunk is due
    step.time = entry.time;
    if (fill(cursor, step)) return true;
  }
}

uint32_t Merge::thread_index(uint32_t process, uint32_t number) {
  constexpr uint32_t kUnknown = UINT32_MAX;
  constexpr uint32_t kMostThreads = 1u << 24;
  number &= kMostThreads - 1;  // a damaged number must not cost memory without end
  auto& known = thread_of_[process];
  if (number >= known.size()) known.resize(number + 1, kUnknown);
  if (known[number] == kUnknown) {
    known[number] = static_cast<uint32_t>(threads_.size());
    threads_.push_back({process, number});
  }
  return known[number];
}

// False when nothing happened: one half of a realloc that had or got no block.
bool Merge::fill(const Cursor& cursor, Step& step) {
  const Event& event = cursor.event;
  step.process = cursor.process;
  step.thread = thread_index(cursor.process, event.thread);
  step.event = &event;
  step.event_number = cursor.number;
  step.resized = event.kind == Kind::kRealloc;
  step.size = event.size;
  uint64_t address = event.address;
  switch (event.kind) {
  case Kind::kMalloc:
  case Kind::kCalloc:
  case Kind::kAligned: step.what = Step::What::kAcquired; break;
  case Kind::kFree:
  case Kind::kFreeMeasured: step.what = Step::What::kReleased; break;
  case Kind::kRealloc:
    step.what = cursor.second_half ? Step::What::kAcquired : Step::What::kReleased;
    if (!cursor.second_half) address = event.old_address;
    break;
  case Kind::kFailed: step.what = Step::What::kFailed; return true;
  case Kind::kThreadStart: step.what = Step::What::kThreadStart; return true;
  case Kind::kThreadEnd: step.what = Step::What::kThreadEnd; return true;
  case Kind::kStack:
  case Kind::kFrame:
  case Kind::kModule: return false;
  }
  step.address = apart(cursor.process, address);
  return address != 0;
}

// A file that was merged has the numbers of its processes above its addresses already.
uint64_t Merge::apart(uint32_t process, uint64_t address) {
  if (files_.size() == 1) return address;
  const uint64_t space = uint64_t{process} << (64 - kProcessShift) | address >> kProcessShift;
  const uint64_t* known = spaces_.find(space);
  const uint64_t number = known ? *known : *spaces_.insert(space, spaces_.size());
  return number << kProcessShift | (address & ((uint64_t{1} << kProcessShift) - 1));
}

}  // namespace trace
