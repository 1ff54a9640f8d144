// CRC32C (Castagnoli; reflected polynomial 0x82f63b78, as in iSCSI and ext4). crc32c("123456789") is 0xe3069283.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace trace {

namespace crc_detail {

// Row k: the effect of a byte that k more bytes follow ("slicing by 8").
constexpr std::array<std::array<uint32_t, 256>, 8> make_rows() {
  std::array<std::array<uint32_t, 256>, 8> rows{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? 0x82f63b78u : 0);
    rows[0][byte] = value;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      rows[k][byte] = (rows[k - 1][byte] >> 8) ^ rows[0][rows[k - 1][byte] & 0xff];
  return rows;
}

inline constexpr auto kRows = make_rows();

inline uint32_t eight_bytes(uint32_t crc, uint64_t word) {
  word ^= crc;
  uint32_t result = 0;
  for (size_t k = 0; k < 8; ++k) result ^= kRows[7 - k][(word >> (8 * k)) & 0xff];
  return result;
}

#if defined(__x86_64__)
// The processor has an instruction for just this: a tenth of the work.
inline bool has_instruction() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & 1u << 20);
}
inline const bool g_instruction = has_instruction();

__attribute__((target("sse4.2,crc32"))) inline uint32_t by_instruction(const unsigned char*& at, size_t& bytes,
                                                                       uint32_t crc) {
  uint64_t wide = crc;
  for (; bytes >= 8; at += 8, bytes -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  return static_cast<uint32_t>(wide);
}
#endif

}  // namespace crc_detail

// Continues `before`, the checksum of the bytes that come first.
inline uint32_t crc32c(const void* data, size_t bytes, uint32_t before = 0) {
  auto* at = static_cast<const unsigned char*>(data);
  uint32_t crc = ~before;
#if defined(__x86_64__)
  if (crc_detail::g_instruction) crc = crc_detail::by_instruction(at, bytes, crc);
#endif
  for (; bytes >= 8; at += 8, bytes -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    crc = crc_detail::eight_bytes(crc, word);
  }
  for (; bytes != 0; ++at, --bytes) crc = (crc >> 8) ^ crc_detail::kRows[0][(crc ^ *at) & 0xff];
  return ~crc;
}

}  // namespace trace
