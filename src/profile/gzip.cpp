#include "profile/gzip.h"

namespace rh::profile {

namespace {

constexpr uint32_t crc_step(uint32_t value) {
  for (int bit = 0; bit != 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xedb88320u : 0);
  return value;
}

struct CrcTable {
  uint32_t of[256];
  constexpr CrcTable() : of{} {
    for (uint32_t i = 0; i != 256; ++i) of[i] = crc_step(i);
  }
};
constexpr CrcTable kCrc;

uint32_t add_to_crc(uint32_t crc, const unsigned char* bytes, size_t length) {
  for (const unsigned char* end = bytes + length; bytes != end; ++bytes)
    crc = (crc >> 8) ^ kCrc.of[(crc ^ *bytes) & 255];
  return crc;
}

void put_little_endian(unsigned char* to, uint32_t value, int bytes) {
  for (; bytes != 0; --bytes, value >>= 8) *to++ = static_cast<unsigned char>(value);
}

}  // namespace

void Gzip::begin(platform::FileWriter& file) {
  constexpr unsigned char kDeflate = 8, kUnknownSystem = 255;
  const unsigned char header[10] = {0x1f, 0x8b, kDeflate, 0, 0, 0, 0, 0, 0, kUnknownSystem};
  file_ = &file;
  crc_ = ~uint32_t{0};
  length_ = 0;
  used_ = 0;
  write_raw(header, sizeof(header));
}

void Gzip::write(const void* bytes, size_t length) {
  const auto* from = static_cast<const unsigned char*>(bytes);
  length_ += static_cast<uint32_t>(length);
  crc_ = add_to_crc(crc_, from, length);
  while (length != 0) {
    if (used_ == kMostInBlock) write_block(false);
    const size_t room = kMostInBlock - used_, part = length < room ? length : room;
    __builtin_memcpy(block_ + used_, from, part);
    used_ += part;
    from += part;
    length -= part;
  }
}

void Gzip::end() {
  write_block(true);
  unsigned char trailer[8];
  put_little_endian(trailer, ~crc_, 4);
  put_little_endian(trailer + 4, length_, 4);
  write_raw(trailer, sizeof(trailer));
}

void Gzip::write_block(bool is_last) {
  unsigned char header[5] = {is_last};
  put_little_endian(header + 1, static_cast<uint32_t>(used_), 2);
  put_little_endian(header + 3, ~static_cast<uint32_t>(used_), 2);
  write_raw(header, sizeof(header));
  write_raw(block_, used_);
  used_ = 0;
}

void Gzip::write_raw(const void* bytes, size_t length) { file_->write(static_cast<const char*>(bytes), length); }

}  // namespace rh::profile
