// The coding of events: one encoder and one decoder. docs/trace-format.md has it in words.
//
// A number takes 1 to 9 bytes. The count of zero bits at the low end of the first byte says how many bytes follow it;
// above the one bit that ends that count stands the number, 7 bits to a byte. A first byte of 0 is followed by all 64
// bits.
//
// An event is the number (ticks since the event before << 4 | kind), then its fields in the order of their `put` below.
#pragma once

#include <bit>
#include <cstring>

#include "trace/format.h"

namespace trace {

static_assert(std::endian::native == std::endian::little);

// No event takes more but a module, which takes this and its texts; a writer needs this much room (numbers are stored
// by whole words).
inline constexpr size_t kMostEventBytes = 64;

// ---- numbers ----------------------------------------------------------------------------------

// A seventh of `bits`, rounded up; dividing takes twice the instructions.
constexpr unsigned bytes_for(unsigned bits) { return ((bits + 6) * 37) >> 8; }
static_assert([] {
  for (unsigned bits = 1; bits <= 56; ++bits)
    if (bytes_for(bits) != (bits + 6) / 7) return false;
  return true;
}());

inline uint8_t* put_number(uint8_t* at, uint64_t value) {
  if (value >> 56) [[unlikely]] {
    *at = 0;
    std::memcpy(at + 1, &value, 8);
    return at + 9;
  }
  auto bytes = bytes_for(static_cast<unsigned>(std::bit_width(value | 1)));
  uint64_t word = (value * 2 + 1) << (bytes - 1);
  std::memcpy(at, &word, 8);
  return at + bytes;
}

// Small differences in either direction become small numbers.
constexpr uint64_t fold(uint64_t difference) { return (difference << 1) ^ (0 - (difference >> 63)); }
constexpr uint64_t unfold(uint64_t folded) { return (folded >> 1) ^ (0 - (folded & 1)); }

// Addresses count in steps of 8 bytes; one that is no multiple of 8 keeps its low bits at the top.
constexpr uint64_t steps_of(uint64_t address) { return std::rotr(address, 3); }
constexpr uint64_t address_of(uint64_t steps) { return std::rotl(steps, 3); }

// What the next event is told relative to. A chunk begins with {begin.ticks, 0}.
struct Base {
  uint64_t time;
  uint64_t steps;
};

// ---- encoder ----------------------------------------------------------------------------------

class Encoder {
 public:
  Encoder(uint8_t* at, Base& base) : at_(at), base_(base) {}

  uint8_t* end() const { return at_; }

  // Inlined, where the kind is known: of the rest nothing is left then.
  [[gnu::always_inline]] void put(const Event& event) {
    const uint64_t before = base_.time;
    if (event.stack != 0 && allocates(event.kind)) {
      put_head(Kind::kStack, before);
      put(event.stack);
    }
    put_head(event.kind, event.time);
    switch (event.kind) {
    case Kind::kMalloc:
    case Kind::kCalloc: put_address(event.address); return put(event.size);
    case Kind::kAligned:
      put_address(event.address);
      put(event.size);
      return put(static_cast<uint64_t>(std::countr_zero(event.alignment)));
    case Kind::kFree: return put_address(event.address);
    case Kind::kFreeMeasured: put_address(event.address); return put(event.resident_kib);
    case Kind::kRealloc:
      // A signal's handler may have written events since `begin`.
      put(base_.time - (event.begin < before ? before : event.begin > base_.time ? base_.time : event.begin));
      put_address(event.old_address);
      put_address(event.address);
      return put(event.size);
    case Kind::kFailed: put(static_cast<uint64_t>(event.asked)); return put(event.size);
    case Kind::kThreadStart: return put(event.thread);
    case Kind::kThreadEnd: return;
    case Kind::kStack: return;
    case Kind::kFrame:
      put(event.stack);
      put(event.stack - event.parent);
      put(event.module);
      return put(event.address);
    case Kind::kModule: put(event.module); return put_module(*event.description);
    }
  }

 private:
  void put(uint64_t value) { at_ = put_number(at_, value); }

  // Time never runs backwards within a stream.
  void put_head(Kind kind, uint64_t time) {
    uint64_t now = time < base_.time ? base_.time : time;
    put((now - base_.time) << 4 | static_cast<uint64_t>(kind));
    base_.time = now;
  }

  void put_address(uint64_t address) {
    uint64_t steps = steps_of(address);
    put(fold(steps - base_.steps));
    base_.steps = steps;
  }

  void put_module(const ModuleDescription& module) {
    put(module.start);
    put(module.bytes);
    put(module.file_offset);
    put_text(module.build_id);
    put_text(module.path);
  }

  void put_text(std::string_view text) {
    put(text.size());
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }

  uint8_t* at_;
  Base& base_;
};

// ---- decoder ----------------------------------------------------------------------------------

// Reads the events of one chunk: `bytes` are its `used` bytes. Never reads beyond them.
class Decoder {
 public:
  enum class Result { kEvent, kEnd, kDamaged };

  Decoder(const ChunkHeader& chunk, const uint8_t* bytes, size_t count)
      : at_(bytes), end_(bytes + count), base_{chunk.begin.ticks, 0}, thread_(chunk.thread) {}

  // An event's description holds until the next call.
  Result next(Event& event) {
    if (at_ == end_) return Result::kEnd;
    event = {};
    get_head(event);
    bool known = event.kind == Kind::kStack ? get_with_stack(event) : get_fields(event);
    event.thread = thread_;
    return known && !damaged_ ? Result::kEvent : Result::kDamaged;
  }

 private:
  void get_head(Event& event) {
    uint64_t head = get();
    event.kind = static_cast<Kind>(head & 15);
    base_.time += head >> 4;
    event.time = event.begin = base_.time;
  }

  bool get_with_stack(Event& event) {
    event.stack = static_cast<uint32_t>(get());
    get_head(event);
    return allocates(event.kind) && get_fields(event);
  }

  bool get_fields(Event& event) {
    switch (event.kind) {
    case Kind::kMalloc:
    case Kind::kCalloc:
      event.address = get_address();
      event.size = get();
      return true;
    case Kind::kAligned:
      event.address = get_address();
      event.size = get();
      event.alignment = uint64_t{1} << (get() & 63);
      return true;
    case Kind::kFree: event.address = get_address(); return true;
    case Kind::kFreeMeasured:
      event.address = get_address();
      event.resident_kib = get();
      return true;
    case Kind::kRealloc:
      event.begin = event.time - get();
      event.old_address = get_address();
      event.address = get_address();
      event.size = get();
      return true;
    case Kind::kFailed:
      event.asked = static_cast<Kind>(get() & 15);
      event.size = get();
      return true;
    case Kind::kThreadStart: thread_ = static_cast<uint32_t>(get()); return true;
    case Kind::kThreadEnd: return true;
    case Kind::kStack: return false;
    case Kind::kFrame:
      event.stack = static_cast<uint32_t>(get());
      event.parent = event.stack - static_cast<uint32_t>(get());
      event.module = static_cast<uint32_t>(get());
      event.address = get();
      return event.parent < event.stack;
    case Kind::kModule:
      event.module = static_cast<uint32_t>(get());
      event.description = &module_;
      module_ = {get(), get(), get(), get_text(), get_text()};  // a list in braces is read from left to right
      return true;
    }
    return false;
  }

  std::string_view get_text() {
    const uint64_t size = get();
    if (size > static_cast<size_t>(end_ - at_)) {
      damaged_ = true;
      return {};
    }
    const std::string_view text(reinterpret_cast<const char*>(at_), static_cast<size_t>(size));
    at_ += size;
    return text;
  }

  uint64_t get() {
    size_t bytes = at_ == end_ ? 10 : static_cast<size_t>(std::countr_zero(*at_ | 0x100u)) + 1;
    if (bytes > static_cast<size_t>(end_ - at_)) {
      damaged_ = true;
      at_ = end_;
      return 0;
    }
    uint64_t value = 0;
    if (bytes == 9) {
      std::memcpy(&value, at_ + 1, 8);
    } else {
      std::memcpy(&value, at_, bytes);
      value >>= bytes;
    }
    at_ += bytes;
    return value;
  }

  uint64_t get_address() {
    base_.steps += unfold(get());
    return address_of(base_.steps);
  }

  const uint8_t* at_;
  const uint8_t* end_;
  Base base_;
  uint32_t thread_;
  ModuleDescription module_;
  bool damaged_ = false;
};

}  // namespace trace
