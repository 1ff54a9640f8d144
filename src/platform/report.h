// Messages to the user: one line on stderr, beginning with "reheap: "; of misuse also an object in a file of JSON.
#pragma once

#include "base/text.h"
#include "platform/platform.h"

namespace rh {

// Writes "reheap: <message>\n" in one piece.
void report(const Text& message);

// Says something in a text, which may be of any length.
using Say = void(Text& text, const void* context);

// Writes "reheap: <what is said>\n" in one piece; but while another thread has a line that does not come to its end,
// in several.
void report_line(Say* say, const void* context);

// In a forked child, where the other threads are not: none of them has a line that does not come to its end.
void leave_reports_of_others(platform::ThreadToken own);

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

// Reports it: the line says who made and who freed the block, and the file where the calling thread is. What is said
// first is made elsewhere than on the stack, which may be a small one of a signal's handler.
void tell_misuse(Say* say, const void* context, const Misuse& misuse = {});
void tell_misuse(const Text& message, const Misuse& misuse = {});

// The same, and aborts.
[[noreturn]] void fatal(const Text& message, const Misuse& misuse = {});

// From now on each misuse is also appended to this file, as one object on a line; %p in the path stands for the
// process's id. The path, which stays the caller's, is kept; null: to none.
void set_misuse_file(const char* path);

}  // namespace rh
