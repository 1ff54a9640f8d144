#include "base/text.h"

#include "base/compiler.h"

namespace rh {

Text& Text::operator<<(char character) {
  if (length_ == sizeof(buffer_)) {
    if (sink_ == nullptr) return *this;
    flush();
  }
  buffer_[length_++] = character;
  return *this;
}

Text& Text::operator<<(const char* text) {
  for (; *text != 0; ++text) *this << *text;
  return *this;
}

Text& Text::decimal(uint64_t value) {
  char digits[20];
  size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (count != 0) *this << digits[--count];
  return *this;
}

Text& Text::hex(uint64_t value) {
  *this << "0x";
  int shift = 60;
  while (shift > 0 && (value >> shift) == 0) shift -= 4;
  for (; shift >= 0; shift -= 4) *this << "0123456789abcdef"[(value >> shift) & 15];
  return *this;
}

namespace {

// Length in bytes of the UTF-8 character (RFC 3629) at `text`; 0 when it is invalid.
size_t character_length(const char* text) {
  auto byte = [text](size_t at) { return static_cast<unsigned char>(text[at]); };
  unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  for (size_t at = 1; at < length; ++at)
    if ((byte(at) & 0xc0) != 0x80) return 0;
  unsigned second = byte(1);
  bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  bool surrogate = first == 0xed && second > 0x9f;
  bool beyond = first == 0xf4 && second > 0x8f;
  return overlong || surrogate || beyond ? 0 : length;
}

}  // namespace

Text& Text::quoted(const char* text) {
  *this << '"';
  while (*text != 0) {
    unsigned char byte = static_cast<unsigned char>(*text);
    size_t length = character_length(text);
    if (byte < 0x20) {
      *this << "\\u00" << "0123456789abcdef"[byte >> 4] << "0123456789abcdef"[byte & 15];
    } else if (length == 0) {
      *this << "\\ufffd";
    } else {
      if (*text == '"' || *text == '\\') *this << '\\';
      for (size_t at = 0; at < length; ++at) *this << text[at];
    }
    text += length == 0 ? 1 : length;
  }
  return *this << '"';
}

void Text::flush() {
  if (sink_ == nullptr || length_ == 0) return;
  sink_(buffer_, length_, context_);
  length_ = 0;
}

void Json::begin(const char* key) {
  if (!first_) text_ << ',';
  first_ = false;
  if (key != nullptr) text_.quoted(key) << ':';
}

Json& Json::open(const char* key, char bracket) {
  begin(key);
  text_ << bracket;
  first_ = true;
  return *this;
}

Json& Json::close(char bracket) {
  text_ << bracket;
  first_ = false;
  return *this;
}

Json& Json::number(const char* key, uint64_t value) {
  begin(key);
  text_.decimal(value);
  return *this;
}

Json& Json::string(const char* key, const char* value) {
  begin(key);
  text_.quoted(value);
  return *this;
}

Json& Json::boolean(const char* key, bool value) {
  begin(key);
  text_ << (value ? "true" : "false");
  return *this;
}

Json& Json::address(const char* key, uint64_t value) {
  begin(key);
  text_ << '"';
  text_.hex(value) << '"';
  return *this;
}

namespace {

int digit_value(char character, unsigned base) {
  int value = -1;
  if (character >= '0' && character <= '9') value = character - '0';
  if (character >= 'a' && character <= 'f') value = character - 'a' + 10;
  if (character >= 'A' && character <= 'F') value = character - 'A' + 10;
  return value < static_cast<int>(base) ? value : -1;
}

}  // namespace

bool parse_number(const char* text, uint64_t* value, const char** end) {
  unsigned base = 10;
  if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    base = 16;
    text += 2;
  }
  if (digit_value(*text, base) < 0) return false;
  uint64_t result = 0;
  for (int digit; (digit = digit_value(*text, base)) >= 0; ++text) {
    if (__builtin_mul_overflow(result, base, &result)) return false;
    if (__builtin_add_overflow(result, static_cast<unsigned>(digit), &result)) return false;
  }
  *value = result;
  *end = text;
  return true;
}

bool parse_size(const char* text, uint64_t* size, const char** end) {
  constexpr const char* kSuffixes = "KMGT";
  if (!parse_number(text, size, end)) return false;
  for (unsigned index = 0; kSuffixes[index] != 0; ++index) {
    if (**end != kSuffixes[index]) continue;
    unsigned shift = 10 * (index + 1);
    if (*size > UINT64_MAX >> shift) return false;
    *size <<= shift;
    *end += begins_with(*end + 1, "iB") ? 3 : 1;
    break;
  }
  return true;
}

RH_AT_START bool same_text(const char* a, const char* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}

RH_AT_START bool begins_with(const char* text, const char* with) {
  while (*with != 0 && *text == *with) ++text, ++with;
  return *with == 0;
}

}  // namespace rh
