// Messages to the user: one line on stderr, beginning with "reheap: "; of misuse also an object in a file of JSON.
#pragma once

#include "base/text.h"
#include "platform/platform.h"

namespace rh {

// Writes "reheap: <message>\n" in one piece.
void report(const Text& message);

// A line of any length, written in one piece when it ends; but while another thread has one too, in several. Its text
// lies apart: it may be made on the stack of a signal's handler.
class Line {
 public:
  Line();
  ~Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  Text& text() { return text_; }
  bool is_whole() const { return whole_; }

 private:
  bool whole_;
  Text text_;
};

// Who did something to a block, and from where.
struct Event {
  static constexpr unsigned kMostFrames = 24;
  uint64_t thread = 0;  // 0: it is not known
  unsigned depth = 0;
  uintptr_t frames[kMostFrames] = {};  // the innermost first
};

// The calling thread does it, now.
void note(Event& event);

// What is known of a misuse of memory beside its message.
struct Misuse {
  uintptr_t block = 0;  // its start; 0: none is known
  size_t size = 0;
  const Event *made = nullptr, *freed = nullptr;  // null: not known
};

// Reports it: the line says who made and who freed the block, and the file where the calling thread is.
void tell_misuse(const Text& message, const Misuse& misuse = {});

// The same, and aborts.
[[noreturn]] void fatal(const Text& message, const Misuse& misuse = {});

// From now on each misuse is also appended to this file, as one object on a line; %p in the path stands for the
// process's id. The path, which stays the caller's, is kept; null: to none.
void set_misuse_file(const char* path);

}  // namespace rh
