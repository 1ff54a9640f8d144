// base: text, JSON and numbers, against the C++ library's.
#include "base/text.h"

#include <cerrno>
#include <cstdlib>
#include <string>

#include "support/input.h"

namespace {

void append(const char* part, size_t length, void* to) { static_cast<std::string*>(to)->append(part, length); }

constexpr const char* kReplacement = "\xef\xbf\xbd";  // U+FFFD

// How many bytes at `index` are one character (RFC 3629), 0 when they are none: by its number.
size_t character_at(const std::string& text, size_t index) {
  auto byte = [&](size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u; };
  unsigned lead = byte(index);
  if (lead < 0x80) return 1;
  size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  unsigned number = lead & (0xffu >> (length + 1));
  for (size_t at = 1; at < length; ++at) {
    if (byte(index + at) >> 6 != 2) return 0;
    number = number << 6 | (byte(index + at) & 0x3f);
  }
  constexpr unsigned kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  bool surrogate = number >> 11 == 0x1b;
  bool good = lead >= 0xc0 && lead < 0xf8 && number >= kLeast[length] && number < 0x110000;
  return good && !surrogate ? length : 0;
}

// What is no character in UTF-8, replaced byte by byte.
std::string in_characters(const std::string& text) {
  std::string result;
  for (size_t index = 0, length; index < text.size(); index += length == 0 ? 1 : length) {
    length = character_at(text, index);
    result += length == 0 ? kReplacement : text.substr(index, length);
  }
  return result;
}

// A JSON string back to what it stands for.
std::string unquoted(const std::string& text) {
  std::string plain;
  FUZZ_EXPECT(text.size() >= 2 && text.front() == '"' && text.back() == '"');
  for (size_t index = 1; index + 1 < text.size(); ++index) {
    if (text[index] != '\\') {
      FUZZ_EXPECT(static_cast<unsigned char>(text[index]) >= 0x20 && text[index] != '"');
      plain += text[index];
    } else if (text[++index] == 'u') {
      int number = std::stoi(text.substr(index + 1, 4), nullptr, 16);
      plain += number == 0xfffd ? kReplacement : std::string(1, static_cast<char>(number));
      index += 4;
    } else {
      plain += text[index];
    }
  }
  return plain;
}

void check_text(const std::string& text) {
  std::string seen;
  {
    rh::Text out(append, &seen);
    out.quoted(text.c_str()) << text.c_str();
  }
  FUZZ_EXPECT(seen.size() >= 2 + text.size());
  std::string quoted = seen.substr(0, seen.size() - text.size());
  FUZZ_EXPECT(seen.substr(quoted.size()) == text);
  FUZZ_EXPECT(unquoted(quoted) == in_characters(text));
  rh::Text cut;
  cut << text.c_str();
  FUZZ_EXPECT(std::string(cut.data(), cut.length()) == text.substr(0, 512));
}

void check_number(const std::string& text) {
  uint64_t value = 0;
  const char* end = nullptr;
  bool good = rh::parse_number(text.c_str(), &value, &end);
  bool hex = text.size() > 1 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  char first = text[hex ? 2 : 0];
  bool digit = hex ? std::isxdigit(static_cast<unsigned char>(first)) != 0 : first >= '0' && first <= '9';
  errno = 0;
  char* expected_end = nullptr;
  uint64_t expected = std::strtoull(text.c_str(), &expected_end, hex ? 16 : 10);
  FUZZ_EXPECT(good == (digit && errno == 0));
  if (!good) return;
  FUZZ_EXPECT(value == expected && end == expected_end);
  std::string decimal, address;
  {
    rh::Text out(append, &decimal);
    out.decimal(value);
    rh::Text other(append, &address);
    other.hex(value);
  }
  FUZZ_EXPECT(decimal == std::to_string(value));
  uint64_t again = 0;
  FUZZ_EXPECT(rh::parse_number(address.c_str(), &again, &end) && again == value && *end == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  if (size_t zero = text.find('\0'); zero != std::string::npos) text.resize(zero);
  check_text(text);
  check_number(text);
  // Mostly digits, so that numbers are found.
  for (char& character : text) character = "0123456789abcdefxX "[static_cast<unsigned char>(character) % 19];
  check_number(text);
  check_number("0x" + text);
  check_number(std::to_string(size) + text.substr(0, 20));
  return 0;
}
