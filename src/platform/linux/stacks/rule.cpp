// .eh_frame, as the Linux Standard Base and DWARF 4 describe it. Whatever it says is read by the kernel's leave, and
// what cannot be understood is no rule: the tables of hand-written code are not always right.

#include "platform/linux/stacks/rule.h"

#include <new>

#include "base/compiler.h"
#include "platform/linux/stacks/peek.h"

namespace rh::stacks {
namespace {

// Columns of x86-64.
constexpr uint64_t kFpColumn = 6, kSpColumn = 7, kReturnColumn = 16;

constexpr uint64_t kMostTableBytes = 1 << 16;  // of one function

// Its caller may stand on a small stack: what takes much has its turn one after the other, or lies elsewhere.

// ---- pointers ---------------------------------------------------------------------------------

constexpr uint8_t kRelativeToPlace = 0x10, kRelativeToHeader = 0x30;

uint64_t get_value(Peeking& from, uint8_t format, bool& known) {
  switch (format & 0x0f) {
  case 0x00: return from.get<uint64_t>();
  case 0x02: return from.get<uint16_t>();
  case 0x03: return from.get<uint32_t>();
  case 0x04: return from.get<uint64_t>();
  case 0x0a: return static_cast<uint64_t>(int64_t{from.get<int16_t>()});
  case 0x0b: return static_cast<uint64_t>(int64_t{from.get<int32_t>()});
  case 0x0c: return from.get<uint64_t>();
  }
  known = false;
  return 0;
}

uint64_t get_pointer(Peeking& from, uint8_t encoding, uintptr_t header, bool& known) {
  const uintptr_t place = from.at();
  const uint64_t value = get_value(from, encoding, known);
  switch (encoding & 0xf0) {
  case 0: return value;
  case kRelativeToPlace: return place + value;
  case kRelativeToHeader: return header + value;
  }
  known = false;
  return 0;
}

// ---- the index --------------------------------------------------------------------------------

struct IndexEntry {
  int32_t code;  // both from the header
  int32_t description;
};

// The last description that begins at `pc` or before it. 0: there is none.
RH_NOINLINE uintptr_t find_description(uintptr_t header, uintptr_t pc) {
  constexpr uint8_t kVersion = 1, kSorted = 0x3b;
  constexpr uintptr_t kMostHeaderBytes = 32;
  if (header == 0) return 0;
  Peeking from(header, header + kMostHeaderBytes);
  const auto version = from.get<uint8_t>(), frame = from.get<uint8_t>(), count = from.get<uint8_t>(),
             table = from.get<uint8_t>();
  bool known = version == kVersion && table == kSorted;
  if (!known) return 0;
  get_pointer(from, frame, header, known);
  const uint64_t entries = get_pointer(from, count, header, known);
  if (!known || from.failed()) return 0;
  uint64_t low = 0, high = entries;
  IndexEntry found{};
  while (low < high) {  // by many parts, not by halves: a call to the kernel looks at many entries as fast as at one
    const uint64_t part = (high - low) / (kMostPieces + 1) + 1;
    const auto probes = static_cast<unsigned>((high - low) / part);
    IndexEntry entries_at[kMostPieces];
    const uintptr_t first = from.at() + (low + part - 1) * sizeof found;
    if (!peek_each(first, part * sizeof found, probes, entries_at, sizeof found)) return 0;
    unsigned before = 0;
    while (before < probes && header + static_cast<uintptr_t>(intptr_t{entries_at[before].code}) <= pc) ++before;
    if (before != 0) found = entries_at[before - 1];
    low += before * part;
    if (before < probes) high = low + part - 1;
  }
  return low == 0 ? 0 : header + static_cast<uintptr_t>(intptr_t{found.description});
}

// ---- what a function's description says -------------------------------------------------------

struct Common {
  uint64_t code_unit = 0;
  int64_t data_unit = 0;
  uint8_t encoding = 0;
  bool sized = false;  // descriptions have data of their own before the program
  bool signal = false;
  uintptr_t program = 0;
  uintptr_t end = 0;
};

// Sets where it ends; false for what is no entry.
bool begin_entry(Peeking& from) {
  const auto bytes = from.get<uint32_t>();
  if (from.failed() || bytes == 0 || bytes > kMostTableBytes) return false;
  from.end_at(from.at() + bytes);
  return true;
}

bool get_augmentation(Peeking& from, const char* letters, Common& common) {
  bool known = true;
  if (*letters == 0) return true;
  if (*letters != 'z') return false;
  common.sized = true;
  const uint64_t bytes = from.get_uleb();
  const uintptr_t program = from.at() + bytes;
  for (++letters; *letters != 0 && known; ++letters) switch (*letters) {
    case 'R': common.encoding = from.get<uint8_t>(); break;
    case 'L': from.get<uint8_t>(); break;
    case 'P': get_value(from, from.get<uint8_t>(), known); break;
    case 'S': common.signal = true; break;
    default: known = false;
    }
  if (!known || from.failed() || program < from.at()) return false;
  from.skip(program - from.at());
  return true;
}

RH_NOINLINE bool get_common(uintptr_t at, Common& common) {
  Peeking from(at, at + sizeof(uint32_t));
  if (!begin_entry(from) || from.get<uint32_t>() != 0) return false;
  const auto version = from.get<uint8_t>();
  if (version != 1 && version != 3) return false;
  char letters[8] = {};
  for (char& letter : letters)
    if (letter = from.get<char>(); letter == 0) break;
  if (letters[sizeof letters - 1] != 0) return false;
  common.code_unit = from.get_uleb();
  common.data_unit = from.get_sleb();
  const uint64_t column = version == 1 ? from.get<uint8_t>() : from.get_uleb();
  if (column != kReturnColumn || !get_augmentation(from, letters, common)) return false;
  common.program = from.at();
  common.end = from.end();
  return !from.failed();
}

// ---- the program that says where things are ---------------------------------------------------

struct Row {
  Rule::Base base = Rule::kStackPointer;
  int64_t offset = 0;
  bool found = false;  // base and offset are known
  Rule::Saved saved = Rule::kUnchanged;
  int64_t saved_at = 0;
  bool returns = true;
  int64_t return_at = -kWord;
};

class Program {
 public:
  Program(const Common& common, uintptr_t code, uintptr_t pc) : common_(common), code_(code), pc_(pc) {}

  // False for what is not understood.
  bool run(Peeking& from) {
    while (from.more() && code_ <= pc_)
      if (!step(from)) return false;
    return !from.failed();
  }

  void keep_initial() { initial_ = row_; }
  const Row& row() const { return row_; }

 private:
  static constexpr int kMostKept = 8;

  bool step(Peeking& from) {
    const auto code = from.get<uint8_t>();
    const uint64_t low = code & 0x3f;
    switch (code >> 6) {
    case 1: return advance(low);
    case 2: return set_saved(low, static_cast<int64_t>(from.get_uleb()) * common_.data_unit);
    case 3: return restore(low);
    }
    return move(code, from) || find_frame(code, from) || place(code, from);
  }

  // ... of the place in the code, and of whole rows
  bool move(uint8_t code, Peeking& from) {
    switch (code) {
    case 0x00: return true;
    case 0x01: return code_ = from.get<uintptr_t>(), common_.encoding == 0;
    case 0x02: return advance(from.get<uint8_t>());
    case 0x03: return advance(from.get<uint16_t>());
    case 0x04: return advance(from.get<uint32_t>());
    case 0x0a: return kept_count_ != kMostKept && (kept_[kept_count_++] = row_, true);
    case 0x0b: return kept_count_ != 0 && (row_ = kept_[--kept_count_], true);
    case 0x2e: return from.get_uleb(), true;  // the size of the arguments
    }
    return false;
  }

  // ... of where the caller's frame is
  bool find_frame(uint8_t code, Peeking& from) {
    switch (code) {
    case 0x0c: return set_base(from.get_uleb()), row_.offset = static_cast<int64_t>(from.get_uleb()), true;
    case 0x0d: return set_base(from.get_uleb()), true;
    case 0x0e: return row_.offset = static_cast<int64_t>(from.get_uleb()), true;
    case 0x0f: return compute_frame(from);
    case 0x12: return set_base(from.get_uleb()), row_.offset = from.get_sleb() * common_.data_unit, true;
    case 0x13: return row_.offset = from.get_sleb() * common_.data_unit, true;
    }
    return false;
  }

  // ... of where a register of the caller's is
  bool place(uint8_t code, Peeking& from) {
    const uint64_t column = from.get_uleb();
    switch (code) {
    case 0x05: return set_saved(column, static_cast<int64_t>(from.get_uleb()) * common_.data_unit);
    case 0x06: return restore(column);
    case 0x07: return forget(column);
    case 0x08: return column == kFpColumn ? (row_.saved = Rule::kUnchanged, true) : column != kReturnColumn;
    case 0x09: return from.get_uleb(), lose(column);
    case 0x10: return compute_saved(column, from);
    case 0x11: return set_saved(column, from.get_sleb() * common_.data_unit);
    case 0x14: return from.get_uleb(), lose(column);
    case 0x15: return from.get_sleb(), lose(column);
    case 0x16: return from.skip(from.get_uleb()), lose(column);
    }
    return false;
  }

  bool advance(uint64_t units) { return code_ += units * common_.code_unit, true; }

  void set_base(uint64_t column) {
    row_.found = column == kSpColumn || column == kFpColumn;
    row_.base = column == kSpColumn ? Rule::kStackPointer : Rule::kFromFramePointer;
  }

  bool set_saved(uint64_t column, int64_t at) {
    if (column == kFpColumn) row_.saved = Rule::kBeforeCaller, row_.saved_at = at;
    if (column == kReturnColumn) row_.returns = true, row_.return_at = at;
    return true;
  }

  bool restore(uint64_t column) {
    if (column == kFpColumn) row_.saved = initial_.saved, row_.saved_at = initial_.saved_at;
    if (column == kReturnColumn) row_.returns = initial_.returns, row_.return_at = initial_.return_at;
    return true;
  }

  bool forget(uint64_t column) {
    if (column == kReturnColumn) row_.returns = false;
    return column == kReturnColumn || lose(column);
  }

  bool lose(uint64_t column) {
    if (column == kFpColumn) row_.saved = Rule::kLost;
    return column != kReturnColumn;
  }

  // Of expressions, those for frames that were aligned: a register and an offset, and for the frame what stands there.
  bool compute_frame(Peeking& from) {
    constexpr uint8_t kAtFp = 0x70 + kFpColumn, kAtSp = 0x70 + kSpColumn, kLoad = 0x06;
    const uint64_t bytes = from.get_uleb();
    const uintptr_t end = from.at() + bytes;
    const auto first = from.get<uint8_t>();
    row_.offset = from.get_sleb();
    const bool loads = from.at() + 1 == end && from.get<uint8_t>() == kLoad;
    row_.base = first == kAtSp ? Rule::kStackPointer : loads ? Rule::kThroughFramePointer : Rule::kFromFramePointer;
    row_.found = from.at() == end && (first == kAtFp || (first == kAtSp && !loads));
    return skip_to(from, end);
  }

  bool compute_saved(uint64_t column, Peeking& from) {
    const uint64_t bytes = from.get_uleb();
    const uintptr_t end = from.at() + bytes;
    const auto first = from.get<uint8_t>();
    const int64_t at = from.get_sleb();
    if (column == kFpColumn) {
      row_.saved = first == 0x70 + kFpColumn && from.at() == end ? Rule::kAtFramePointer : Rule::kLost;
      row_.saved_at = at;
    }
    return column != kReturnColumn && skip_to(from, end);
  }

  static bool skip_to(Peeking& from, uintptr_t end) {
    if (from.at() > end) return false;
    from.skip(end - from.at());
    return true;
  }

  const Common& common_;
  uintptr_t code_;  // where the row begins to hold
  uintptr_t pc_;
  Row row_{}, initial_{}, kept_[kMostKept];
  int kept_count_ = 0;
};

Rule with_kind(Rule::Kind kind) {
  Rule rule{};
  rule.kind = kind;
  return rule;
}

Rule packed(const Row& row) {
  if (!row.returns) return with_kind(Rule::kOutermost);
  Rule rule = with_kind(Rule::kTable);
  rule.base = row.base;
  rule.offset = static_cast<int32_t>(row.offset);
  rule.saved = row.saved;
  rule.saved_at = static_cast<int8_t>(row.saved_at / kWord);
  const bool fits =
      row.found && row.return_at == -kWord && rule.offset == row.offset && rule.saved_at * kWord == row.saved_at;
  return fits ? rule : with_kind(Rule::kFramePointer);
}

RH_NOINLINE bool run_common(Program& program, const Common& common) {
  Peeking from(common.program, common.end);
  return program.run(from);
}

Rule run(Program& program, const Common& common, Peeking& from) {
  if (!run_common(program, common)) return with_kind(Rule::kFramePointer);
  program.keep_initial();
  return program.run(from) ? packed(program.row()) : with_kind(Rule::kFramePointer);
}

}  // namespace

Rule rule_from_tables(uintptr_t header, uintptr_t pc) {
  const Rule unknown = with_kind(Rule::kFramePointer);
  const uintptr_t description = find_description(header, pc);
  if (description == 0) return unknown;
  Peeking from(description, description + sizeof(uint32_t));
  Common common;
  if (!begin_entry(from)) return unknown;
  const uintptr_t place = from.at();
  const auto back = from.get<uint32_t>();
  if (from.failed() || back == 0 || !get_common(place - back, common)) return unknown;
  bool known = true;
  const uintptr_t code = get_pointer(from, common.encoding, header, known);
  const uint64_t bytes = get_value(from, common.encoding, known);
  if (common.sized) from.skip(from.get_uleb());
  if (!known || from.failed() || pc - code >= bytes) return unknown;
  if (common.signal) return with_kind(Rule::kSignal);
  // Who asks has the lock.
  alignas(Program) RH_RARE_ZEROS static unsigned char place_of_program[sizeof(Program)];
  return run(*new (place_of_program) Program(common, code, pc), common, from);
}

}  // namespace rh::stacks
