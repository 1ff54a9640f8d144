// Text in a fixed buffer, for messages and JSON: allocates nothing, never overruns.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rh {

class Text {
 public:
  using Buffer = char[512];
  using Sink = void (*)(const char* text, size_t length, void* context);

  // Without a sink, text that does not fit is truncated. With one, full buffers are passed on.
  Text() = default;
  Text(Sink sink, void* context) : sink_(sink), context_(context) {}
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  ~Text() { flush(); }

  Text& operator<<(char character);
  Text& operator<<(const char* text);
  Text& decimal(uint64_t value);
  Text& hex(uint64_t value);
  // A JSON string, quoted and escaped. Each byte that is not valid UTF-8 becomes U+FFFD.
  Text& quoted(const char* text);

  void flush();
  const char* data() const { return buffer_; }
  size_t length() const { return length_; }

 private:
  Sink sink_ = nullptr;
  void* context_ = nullptr;
  size_t length_ = 0;
  Buffer buffer_;
};

// JSON objects and arrays on top of Text; places the commas.
class Json {
 public:
  explicit Json(Text& text) : text_(text) {}
  Json& open(const char* key, char bracket);
  Json& close(char bracket);
  Json& number(const char* key, uint64_t value);
  Json& string(const char* key, const char* value);
  Json& boolean(const char* key, bool value);
  Json& address(const char* key, uint64_t value);

 private:
  void begin(const char* key);
  Text& text_;
  bool first_ = true;
};

// Parses the number at the start of `text`, decimal, or hex after 0x; `*end` is what follows. False when there is none
// or it does not fit.
bool parse_number(const char* text, uint64_t* value, const char** end);

// The same with K, M, G or T behind it, or KiB and so on.
bool parse_size(const char* text, uint64_t* size, const char** end);

bool same_text(const char* a, const char* b);
bool begins_with(const char* text, const char* with);

}  // namespace rh
