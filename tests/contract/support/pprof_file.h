// A profile's file: checks all that its forms say, gzip's and protocol buffers', and gives what is in it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace pprof_file {

inline std::string read_file(const std::string& path) {
  std::string text;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  char part[4096];
  for (std::size_t got; file != nullptr && (got = std::fread(part, 1, sizeof part, file)) != 0;) text.append(part, got);
  if (file != nullptr) std::fclose(file);
  return text;
}

inline std::uint32_t number_at(const std::string& text, std::size_t at, int bytes) {
  std::uint32_t value = 0;
  for (int i = bytes; i-- != 0;)
    value = value << 8 | static_cast<unsigned char>(text.at(at + static_cast<std::size_t>(i)));
  return value;
}

inline std::uint32_t slow_crc(const std::string& text) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (unsigned char byte : text) {
    crc ^= byte;
    for (int bit = 0; bit != 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
  }
  return ~crc;
}

// Checks all that the format says, of a file in blocks that are not compressed.
inline std::string unpacked(const std::string& file) {
  EXPECT_EQ(file.substr(0, 4), std::string("\x1f\x8b\x08\x00", 4));
  std::string text;
  std::size_t at = 10;
  for (bool is_last = false; !is_last;) {
    is_last = file.at(at) == 1;
    EXPECT_LE(number_at(file, at, 1), 1u);
    const std::uint32_t length = number_at(file, at + 1, 2);
    EXPECT_EQ(number_at(file, at + 3, 2), ~length & 0xffff);
    text += file.substr(at + 5, length);
    at += 5 + length;
  }
  EXPECT_EQ(number_at(file, at, 4), slow_crc(text));
  EXPECT_EQ(number_at(file, at + 4, 4), text.size());
  EXPECT_EQ(file.size(), at + 8);
  return text;
}

inline std::uint64_t varint(const std::string& text, std::size_t& at) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(text.at(at++));
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

inline std::vector<std::uint64_t> varints(const std::string& text) {
  std::vector<std::uint64_t> all;
  for (std::size_t at = 0; at < text.size();) all.push_back(varint(text, at));
  return all;
}

// The fields of a message in their order: numbers as text.
struct Fields : std::multimap<std::uint64_t, std::string> {
  explicit Fields(const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::uint64_t key = varint(text, at), value = varint(text, at);
      EXPECT_TRUE((key & 7) == 0 || (key & 7) == 2) << key;
      const bool is_text = (key & 7) == 2;
      emplace(key >> 3, is_text ? text.substr(at, value) : std::to_string(value));
      if (is_text) at += value;
    }
  }
  std::string one(std::uint64_t field) const {
    const auto found = find(field);
    return found == end() ? "0" : found->second;
  }
  std::vector<std::string> all(std::uint64_t field) const {
    std::vector<std::string> values;
    for (auto [at, last] = equal_range(field); at != last; ++at) values.push_back(at->second);
    return values;
  }
};

}  // namespace pprof_file
