#include "profile/pprof.h"

#include "base/bits.h"
#include "base/text.h"
#include "profile/gzip.h"

namespace rh::profile {

namespace {

// ---- protocol buffers ---------------------------------------------------------------------------

// One message in the making, or numbers one after the other. Room for the longest: a sample of a stack of kMostFrames.
class Message {
 public:
  void number(unsigned field, uint64_t value) {
    if (value == 0) return;  // as what is not there
    varint(field << 3);
    varint(value);
  }
  void bytes(unsigned field, const void* from, size_t length) {
    varint(field << 3 | 2);
    varint(length);
    put(from, length);
  }
  void message(unsigned field, const Message& part) { bytes(field, part.data_, part.length_); }

  void varint(uint64_t value) {
    if (sizeof(data_) - length_ < kLongestVarint) return;
    for (; value >= 0x80; value >>= 7) data_[length_++] = static_cast<unsigned char>(value | 0x80);
    data_[length_++] = static_cast<unsigned char>(value);
  }

  const unsigned char* data() const { return data_; }
  size_t length() const { return length_; }
  void clear() { length_ = 0; }

 private:
  void put(const void* from, size_t length) {
    if (length > sizeof(data_) - length_) length = sizeof(data_) - length_;
    __builtin_memcpy(data_ + length_, from, length);
    length_ += length;
  }

  static constexpr size_t kLongestVarint = 10;
  size_t length_ = 0;
  unsigned char data_[(platform::kMostFrames + 16) * kLongestVarint];
};

// The numbers of the fields.
namespace field {
constexpr unsigned kSampleType = 1, kSample = 2, kMapping = 3, kLocation = 4, kString = 6, kDropFrames = 7,
                   kDuration = 10, kPeriodType = 11, kPeriod = 12, kComment = 13, kDefaultType = 14;
constexpr unsigned kCurve = 8000;  // our own, which pprof passes over: milliseconds and bytes, each pair a message
constexpr unsigned kType = 1, kUnit = 2;
constexpr unsigned kSampleLocations = 1, kSampleValues = 2;
constexpr unsigned kMappingId = 1, kStart = 2, kLimit = 3, kOffset = 4, kFile = 5, kBuildId = 6;
constexpr unsigned kLocationId = 1, kLocationMapping = 2, kAddress = 3;
}  // namespace field

// ---- what a profile is written with -------------------------------------------------------------

struct Range {
  uintptr_t start, end;
};

// Too large for a stack: in memory of its own.
struct Writer {
  Gzip to;
  Message message, part;
  uint64_t strings;
  Array<Range> modules;
  Array<uintptr_t> seen;  // frames by their hash, at most half full; a power of two
};

void put(Writer& writer) {
  writer.to.write(writer.message.data(), writer.message.length());
  writer.message.clear();
}

// A file's path may be longer than a message.
uint64_t put_string(Writer& writer, const char* text, size_t length) {
  Message head;
  head.varint(field::kString << 3 | 2);
  head.varint(length);
  writer.to.write(head.data(), head.length());
  writer.to.write(text, length);
  return writer.strings++;
}

uint64_t put_string(Writer& writer, const char* text) { return put_string(writer, text, __builtin_strlen(text)); }

void put_type(Writer& writer, unsigned number, uint64_t type, uint64_t unit) {
  writer.part.number(field::kType, type);
  writer.part.number(field::kUnit, unit);
  writer.message.message(number, writer.part);
  writer.part.clear();
  put(writer);
}

void put_types(Writer& writer, uint64_t every) {
  const uint64_t count = put_string(writer, "count"), bytes = put_string(writer, "bytes");
  put_type(writer, field::kSampleType, put_string(writer, "alloc_objects"), count);
  put_type(writer, field::kSampleType, put_string(writer, "alloc_space"), bytes);
  put_type(writer, field::kSampleType, put_string(writer, "inuse_objects"), count);
  const uint64_t usual = put_string(writer, "inuse_space");
  put_type(writer, field::kSampleType, usual, bytes);
  put_type(writer, field::kSampleType, put_string(writer, "peak_objects"), count);
  put_type(writer, field::kSampleType, put_string(writer, "peak_space"), bytes);
  put_type(writer, field::kSampleType, put_string(writer, "lifetime"), put_string(writer, "milliseconds"));
  put_type(writer, field::kSampleType, put_string(writer, "samples"), count);
  put_type(writer, field::kPeriodType, put_string(writer, "space"), bytes);
  writer.message.number(field::kPeriod, every);
  writer.message.number(field::kDefaultType, usual);
  put(writer);
}

// ---- modules, and places in them ----------------------------------------------------------------

void put_module(const platform::Module& module, void* context) {
  Writer& writer = *static_cast<Writer*>(context);
  if (!writer.modules.make_room(1)) return;
  writer.modules.add() = {module.start, module.end};
  const uint64_t path = put_string(writer, module.path, module.path_length);
  Text build_id;
  for (size_t i = 0; i != module.build_id_length; ++i)
    for (int shift = 4; shift >= 0; shift -= 4) build_id << "0123456789abcdef"[module.build_id[i] >> shift & 15];
  const uint64_t build = put_string(writer, build_id.data(), build_id.length());
  writer.part.number(field::kMappingId, writer.modules.count());
  writer.part.number(field::kStart, module.start);
  writer.part.number(field::kLimit, module.end);
  writer.part.number(field::kOffset, module.file_offset);
  writer.part.number(field::kFile, path);
  writer.part.number(field::kBuildId, build);
  writer.message.message(field::kMapping, writer.part);
  writer.part.clear();
  put(writer);
}

// 0: none.
uint64_t module_of(const Writer& writer, uintptr_t address) {
  for (size_t i = 0; i != writer.modules.count(); ++i)
    if (address - writer.modules[i].start < writer.modules[i].end - writer.modules[i].start) return i + 1;
  return 0;
}

// The call, not where it returns to.
uintptr_t call_of(uintptr_t frame) { return frame - 1; }

// Where a frame stands in the table, or is to stand.
size_t place_of(const Writer& writer, uintptr_t frame) {
  const size_t mask = writer.seen.count() - 1;
  size_t at = static_cast<size_t>(mix(frame)) & mask;
  while (writer.seen[at] != 0 && writer.seen[at] != frame) at = (at + 1) & mask;
  return at;
}

// Its number in the file: shorter there than its address.
uint64_t location_at(size_t place) { return place + 1; }

void put_location(Writer& writer, uintptr_t frame, size_t place) {
  writer.seen[place] = frame;
  writer.part.number(field::kLocationId, location_at(place));
  writer.part.number(field::kLocationMapping, module_of(writer, call_of(frame)));
  writer.part.number(field::kAddress, call_of(frame));
  writer.message.message(field::kLocation, writer.part);
  writer.part.clear();
  put(writer);
}

// In the place of each frame its location's number is left.
bool put_locations(Writer& writer, Stacks& stacks) {
  size_t places = 1024;
  while (places < 2 * stacks.frame_count()) places *= 2;
  if (!writer.seen.make_zeros(places)) return false;
  for (size_t i = 0; i != stacks.frame_count(); ++i) {
    uintptr_t& frame = stacks.frames()[i];
    const size_t place = place_of(writer, frame);
    if (writer.seen[place] != frame) put_location(writer, frame, place);
    frame = static_cast<uintptr_t>(location_at(place));
  }
  return true;
}

// ---- samples ------------------------------------------------------------------------------------

void add_amount(Message& values, Amount amount) {
  values.varint((amount.objects + Amount::kObject / 2) / Amount::kObject);
  values.varint(amount.bytes);
}

void put_stack(Writer& writer, const Snapshot& shot, const Stack& stack) {
  Message& part = writer.part;
  const uintptr_t* locations = shot.stacks.frames() + stack.first_frame;
  for (uint32_t i = 0; i != stack.depth; ++i) part.varint(locations[i]);
  Message sample;
  sample.message(field::kSampleLocations, part);
  part.clear();
  add_amount(part, stack.allocated);
  add_amount(part, stack.live);
  add_amount(part, stack.peak == shot.peak ? stack.at_peak : stack.live);
  part.varint(stack.lifetime_ms);
  part.varint(stack.sampled);
  sample.message(field::kSampleValues, part);
  part.clear();
  writer.message.message(field::kSample, sample);
  put(writer);
}

void put_comment(Writer& writer, const Text& text) {
  writer.message.number(field::kComment, put_string(writer, text.data(), text.length()));
  put(writer);
}

void put_curve(Writer& writer, const Curve& curve) {
  for (uint32_t i = 0; i != curve.count; ++i) {
    writer.part.varint(curve.points[i].ms);
    writer.part.varint(curve.points[i].live);
    writer.message.message(field::kCurve, writer.part);
    writer.part.clear();
    put(writer);
  }
}

void put_lost(Writer& writer, const Snapshot& shot) {
  if (shot.lost == 0) return;
  Text lost;
  lost << "lost for lack of memory: ";
  put_comment(writer, lost.decimal(shot.lost) << " samples");
}

bool put_profile(Writer& writer, Snapshot& shot, platform::FileWriter& file) {
  writer.to.begin(file);
  put_string(writer, "");
  put_types(writer, shot.every);
  platform::each_module(put_module, &writer);
  if (!put_locations(writer, shot.stacks)) return false;
  for (size_t i = 0; i != shot.stacks.all().count(); ++i) put_stack(writer, shot, shot.stacks.all()[i]);
  put_curve(writer, shot.curve);
  put_lost(writer, shot);
  // Where the library is part of the program its own functions end the stacks.
  writer.message.number(field::kDropFrames, put_string(writer, "rh::.*|rh_(malloc|calloc|realloc|aligned_alloc)"));
  writer.message.number(field::kDuration, shot.duration_ms * 1000000);
  put(writer);
  writer.to.end();
  return true;
}

constexpr const char* kNoMemory = "no memory to write it";

const char* write_to(const char* path, Writer& writer, Snapshot& shot) {
  platform::FileWriter file(path);
  if (file.is_open() && !put_profile(writer, shot, file)) return kNoMemory;
  return file.refusal();
}

struct Work {
  Snapshot shot;
  Writer writer;
};

}  // namespace

const char* write(const char* path) {
  constexpr size_t kSize = align_up(sizeof(Work), kGrain);
  Work* work = static_cast<Work*>(take_memory(kSize));
  if (work == nullptr) return kNoMemory;
  const bool taken = take(work->shot);
  const char* refused = taken ? write_to(path, work->writer, work->shot) : kNoMemory;
  work->writer.modules.clear();
  work->writer.seen.clear();
  give_back(work->shot);
  give_memory(work, kSize);
  return refused;
}

}  // namespace rh::profile
