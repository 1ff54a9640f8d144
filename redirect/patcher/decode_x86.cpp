#include "decode_x86.h"

#include "opcodes_x86.h"

namespace rh::redirect {

namespace x86 {

namespace {

constexpr size_t kLongest = 15;

bool in(uint8_t opcode, uint8_t first, uint8_t last) { return opcode >= first && opcode <= last; }

// Bytes of an instruction; behind the last that there is, zeros, and too_long() tells.
class Reader {
 public:
  Reader(const uint8_t* code, size_t available)
      : code_(code), available_(available < kLongest ? available : kLongest) {}

  uint8_t peek() const { return at_ < available_ ? code_[at_] : 0; }
  uint8_t next() {
    uint8_t byte = peek();
    ++at_;
    return byte;
  }
  // `size` bytes, as a signed number.
  int64_t number(size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value |= uint64_t{next()} << (8 * i);
    size_t unused = 64 - 8 * size;
    return size == 0 ? 0 : static_cast<int64_t>(value << unused) >> unused;
  }
  size_t position() const { return at_; }
  bool too_long() const { return at_ > available_; }

 private:
  const uint8_t* code_;
  size_t available_;
  size_t at_ = 0;
};

// The parts of one instruction, read from its first byte to its last.
class Parts {
 public:
  Parts(Mode mode, const uint8_t* code, size_t available) : mode_(mode), reader_(code, available) {}

  bool read();
  Flow flow() const;
  bool is_padding() const;
  uint8_t opcode() const { return opcode_; }
  size_t length() const { return reader_.position(); }
  bool is_branch() const;
  int64_t immediate() const { return immediate_; }
  size_t field() const { return field_; }  // of a displacement relative to the instruction
  int64_t displacement() const { return displacement_; }

 private:
  void read_prefixes();
  bool read_opcode();
  bool read_vex(bool long_form);
  const Row* find_row() const;
  bool matches(const Row& row) const;
  bool lock_is_allowed() const;
  bool read_operand();
  void read_displacement(size_t size) { displacement_ = reader_.number(size); }
  bool read_immediate();
  size_t immediate_size() const;
  size_t operand_size() const { return wide_ ? 8 : operand_prefix_ ? 2 : 4; }
  size_t address_size() const;
  uint8_t prefix() const {
    if (repeat_ != 0) return repeat_;
    return operand_prefix_ ? k66 : kNone;
  }
  bool is_64() const { return mode_ == Mode::bits_64; }
  bool is_vex() const { return map_ >= Map::vex_0f; }
  bool in_registers() const { return operand_ >= 0xC0; }
  unsigned middle() const { return operand_ >> 3 & 7; }

  Mode mode_;
  Reader reader_;
  bool operand_prefix_ = false, address_prefix_ = false, lock_ = false;
  bool has_rex_ = false, wide_ = false;
  uint8_t repeat_ = 0;  // kF2 or kF3: the last one
  Map map_ = Map::one_byte;
  uint8_t opcode_ = 0;
  uint8_t vector_ = 0;   // of VEX: what it asks of When
  uint8_t operand_ = 0;  // the byte behind the opcode
  const Row* row_ = nullptr;
  size_t field_ = 0;
  int64_t displacement_ = 0, immediate_ = 0;
};

void Parts::read_prefixes() {
  for (;; reader_.next()) {
    uint8_t byte = reader_.peek();
    if (is_64() && in(byte, 0x40, 0x4F)) {
      has_rex_ = true;
      wide_ = (byte & 8) != 0;
      continue;
    }
    switch (byte) {
    case 0x66: operand_prefix_ = true; break;
    case 0x67: address_prefix_ = true; break;
    case 0xF0: lock_ = true; break;
    case 0xF2: repeat_ = kF2; break;
    case 0xF3: repeat_ = kF3; break;
    case 0x26:
    case 0x2E:
    case 0x36:
    case 0x3E:
    case 0x64:
    case 0x65: break;  // segments
    default: return;
    }
    has_rex_ = wide_ = false;  // REX counts in front of the opcode alone
  }
}

bool Parts::read_opcode() {
  opcode_ = reader_.next();
  bool may_be_vex = is_64() || reader_.peek() >= 0xC0;  // else lds and les
  if (may_be_vex && in(opcode_, 0xC4, 0xC5)) return read_vex(opcode_ == 0xC4);
  if (opcode_ != 0x0F) return true;
  map_ = Map::two_bytes;
  opcode_ = reader_.next();
  if (opcode_ != 0x38 && opcode_ != 0x3A) return true;
  map_ = opcode_ == 0x38 ? Map::at_0f38 : Map::at_0f3a;
  opcode_ = reader_.next();
  return true;
}

bool Parts::read_vex(bool long_form) {
  if (operand_prefix_ || repeat_ != 0 || lock_ || has_rex_) return false;
  constexpr uint8_t kPrefixes[] = {kNone, k66, kF3, kF2};
  uint8_t map = 1;
  if (long_form) map = reader_.next() & 0x1F;
  if (map < 1 || map > 3) return false;
  map_ = static_cast<Map>(static_cast<uint8_t>(Map::vex_0f) + map - 1);
  uint8_t bits = reader_.next();
  wide_ = long_form && (bits & 0x80) != 0;
  vector_ = static_cast<uint8_t>((wide_ ? kW1 : kW0) | ((bits & 4) != 0 ? kL1 : kL0));
  if ((bits >> 3 & 0xF) != 0xF) vector_ |= kThird;
  uint8_t prefix = kPrefixes[bits & 3];
  operand_prefix_ = prefix == k66;
  repeat_ = prefix > k66 ? prefix : 0;
  opcode_ = reader_.next();
  return true;
}

bool Parts::matches(const Row& row) const {
  if ((row.prefixes & prefix()) == 0 || (row.when & (is_64() ? kIn64 : kIn32)) == 0) return false;
  if (is_vex() && (row.when & vector_) != vector_) return false;
  if ((row.when & kExact) != 0) return in(operand_, row.memory, row.registers);
  return !row.has_operands() || ((in_registers() ? row.registers : row.memory) >> middle() & 1) != 0;
}

const Row* Parts::find_row() const {
  uint8_t opcode = opcode_;
  // The eight operations of add to cmp have the same forms.
  if (map_ == Map::one_byte && opcode < 0x40 && (opcode & 7) < 6) opcode &= 7;
  for (const Row& row : rows_of(map_))
    if (in(opcode, row.first, row.last) && matches(row)) return &row;
  return nullptr;
}

bool Parts::lock_is_allowed() const { return !in_registers() && can_lock(map_, opcode_, middle()); }

size_t Parts::address_size() const {
  if (is_64()) return address_prefix_ ? 4 : 8;
  return address_prefix_ ? 2 : 4;
}

bool Parts::read_operand() {
  reader_.next();
  if (in_registers()) return true;
  unsigned mode = operand_ >> 6, base = operand_ & 7;
  if (address_size() == 2) {
    read_displacement(mode == 1 ? 1 : mode == 2 || base == 6 ? 2 : 0);
    return true;
  }
  bool scaled = base == 4;
  if (scaled) base = reader_.next() & 7;
  bool bare = mode == 0 && base == 5;  // no register
  if (bare && !scaled && is_64()) {
    if (address_prefix_) return false;
    field_ = reader_.position();
  }
  read_displacement(mode == 1 ? 1 : mode == 2 || bare ? 4 : 0);
  return true;
}

size_t Parts::immediate_size() const {
  size_t half = operand_size() == 2 ? 2 : 4;
  switch (row_->immediate) {
  case Immediate::none: return 0;
  case Immediate::byte:
  case Immediate::short_branch: return 1;
  case Immediate::word: return 2;
  case Immediate::frame: return 3;
  case Immediate::half:
  case Immediate::near_branch: return half;
  case Immediate::full: return operand_size();
  case Immediate::far_address: return half + 2;
  case Immediate::near_address: return address_size();
  }
  return 0;
}

bool Parts::read_immediate() {
  if (is_64() && operand_prefix_ && row_->immediate == Immediate::near_branch) return false;
  immediate_ = reader_.number(immediate_size());
  return true;
}

bool Parts::read() {
  read_prefixes();
  if (!read_opcode()) return false;
  operand_ = reader_.peek();
  row_ = find_row();
  if (row_ == nullptr || (lock_ && !(row_->has_operands() && lock_is_allowed()))) return false;
  if (row_->has_operands() && !read_operand()) return false;
  return read_immediate() && !reader_.too_long();
}

// ---- what it does -------------------------------------------------------------------------------------------

bool Parts::is_branch() const {
  return row_->immediate == Immediate::short_branch || row_->immediate == Immediate::near_branch;
}

Flow flow_of_group_5(unsigned operation) {
  if (operation == 2 || operation == 3) return Flow::call;
  return operation == 4 || operation == 5 ? Flow::leave : Flow::next;
}

Flow flow_of_one_byte(uint8_t opcode, unsigned middle, int64_t immediate) {
  switch (opcode) {
  case 0xE8: return Flow::call;
  case 0xE9:
  case 0xEB: return Flow::jump;
  case 0xC2:
  case 0xC3:
  case 0xCA:
  case 0xCB:
  case 0xCC: return Flow::leave;
  case 0xCD: return immediate == 0x29 ? Flow::leave : Flow::next;  // __fastfail
  case 0xFF: return flow_of_group_5(middle);
  case 0x9A:
  case 0xEA: return Flow::unmovable;  // to another segment
  default: return in(opcode, 0x70, 0x7F) ? Flow::branch : Flow::next;
  }
}

Flow Parts::flow() const {
  // The instruction pointer is cut to 16 bits: in 64-bit mode on some processors.
  if (is_branch() && operand_prefix_) return Flow::unmovable;
  if (map_ == Map::two_bytes) {
    if (is_branch()) return Flow::branch;
    return opcode_ == 0x0B ? Flow::leave : Flow::next;  // ud2
  }
  if (map_ != Map::one_byte) return Flow::next;
  Flow flow = flow_of_one_byte(opcode_, middle(), immediate_);
  return flow == Flow::next && is_branch() ? Flow::unmovable : flow;  // loop, jcxz, xbegin
}

bool Parts::is_padding() const {
  if (map_ == Map::two_bytes) return opcode_ == 0x1F;  // the long no-operation
  return map_ == Map::one_byte && (opcode_ == 0xCC || opcode_ == 0x90);
}

}  // namespace

bool decode(Mode mode, const uint8_t* code, size_t available, Instruction* instruction) {
  Parts parts(mode, code, available);
  if (!parts.read()) return false;
  *instruction = {.length = static_cast<uint8_t>(parts.length()),
                  .flow = parts.flow(),
                  .padding = parts.is_padding(),
                  .condition = static_cast<uint8_t>(parts.opcode() & 0x0F),
                  .field = static_cast<uint8_t>(parts.field())};
  uintptr_t next = reinterpret_cast<uintptr_t>(code) + parts.length();
  if (parts.is_branch()) instruction->target = next + static_cast<uintptr_t>(parts.immediate());
  if (instruction->field != 0) instruction->data = next + static_cast<uintptr_t>(parts.displacement());
  return true;
}

}  // namespace x86

bool decode(const uint8_t* code, size_t available, Instruction* instruction) {
  constexpr bool k64 = sizeof(void*) == 8;
  return x86::decode(k64 ? x86::Mode::bits_64 : x86::Mode::bits_32, code, available, instruction);
}

}  // namespace rh::redirect
