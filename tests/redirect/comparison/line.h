#pragma once

#include <windows.h>

// One line of output: what was called, then what was seen. It is written when it goes out of scope, with what
// tell_side_effects adds. Lines hold no address, so that two runs can be compared.
class Line {
 public:
  [[gnu::format(ms_printf, 2, 3)]] explicit Line(const char* format, ...);
  ~Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  [[gnu::format(ms_printf, 2, 3)]] Line& say(const char* format, ...);

 private:
  void append(const char* format, va_list arguments);

  char text_[1000];
  size_t length_ = 0;
};

// Each program's own: side effects that are gathered while there is a line, and told when it ends.
void forget_side_effects();
void tell_side_effects(Line& line);

// A failure that the current line tells.
void count_failure();

// A failure with a line of its own.
[[gnu::format(ms_printf, 1, 2)]] void fail(const char* format, ...);

int failures();
