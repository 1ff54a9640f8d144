#include "line.h"

namespace {

// ntdll has the C library's formatting for those who have no CRT.
int format_text(char* text, size_t size, const char* format, va_list arguments) {
  using Function = int __cdecl(char*, size_t, const char*, va_list);
  static Function* function;
  if (function == nullptr) {
    function = reinterpret_cast<Function*>(
        reinterpret_cast<void*>(GetProcAddress(GetModuleHandleA("ntdll.dll"), "_vsnprintf")));
  }
  return function(text, size, format, arguments);
}

int failure_count;

void write_out(const char* text, size_t length) {
  DWORD written;
  WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), text, static_cast<DWORD>(length), &written, nullptr);
}

}  // namespace

Line::Line(const char* format, ...) {
  forget_side_effects();
  va_list arguments;
  va_start(arguments, format);
  append(format, arguments);
  va_end(arguments);
  say(":");
}

Line& Line::say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  append(format, arguments);
  va_end(arguments);
  return *this;
}

void Line::append(const char* format, va_list arguments) {
  size_t room = sizeof text_ - length_ - 1;
  int length = format_text(text_ + length_, room, format, arguments);
  length_ += length < 0 ? room : static_cast<size_t>(length);
}

Line::~Line() {
  tell_side_effects(*this);
  text_[length_++] = '\n';
  write_out(text_, length_);
}

void fail(const char* format, ...) {
  char text[500] = "FAILED: ";
  size_t length = 8;
  va_list arguments;
  va_start(arguments, format);
  int written = format_text(text + length, sizeof text - length - 1, format, arguments);
  va_end(arguments);
  length = written < 0 ? sizeof text - 1 : length + static_cast<size_t>(written);
  text[length++] = '\n';
  write_out(text, length);
  count_failure();
}

void count_failure() { failure_count++; }

int failures() { return failure_count; }
