#include "checks.h"
#include "thread.h"

namespace {

// Whether another thread gets in: that no lock was left held by a call that ended in an exception.
bool others_get_in(const Subject& subject) {
  bool got_in = false;
  auto work = [&] { got_in = subject.free(subject.alloc(100)); };
  { Thread thread(work); }
  return got_in;
}

void check_raising(const Subject& subject, const char* what, DWORD flags, const Huge& huge) {
  {
    Line line("%s %s raise by alloc %s%s", subject.door.name, subject.name, huge.name, what);
    void* block = observed(line, [&] { return subject.alloc(huge.size, flags); });
    line.say(block == nullptr ? "" : " block");
    if (!others_get_in(subject)) line.say(" LOCKED");
  }
  Line line("%s %s raise by realloc 100 to %s%s", subject.door.name, subject.name, huge.name, what);
  void* block = subject.alloc(100);
  fill(block, 100, 5);
  void* resized = observed(line, [&] { return subject.door.realloc(subject.heap, flags, block, huge.size); });
  line.say(resized == nullptr ? "" : " resized");
  if (!holds(block, 100, 5)) line.say(" NOT KEPT");
  tell_block(line, subject, block);
  tell_freed(line, subject, block);
  if (!others_get_in(subject)) line.say(" LOCKED");
}

void check_going_on(const Subject& subject, DWORD flags) {
  Line line("%s %s go on after the exception", subject.door.name, subject.name);
  void* block = &line;
  Raised raised = guarded([&] { block = subject.alloc(kMost / 2, flags); }, Then::go_on);
  tell_effects(line, kUntouched, raised);
  line.say(block == nullptr ? " null" : " did not return");
}

}  // namespace

void check_raising(const Subject& subject) {
  constexpr DWORD kRaise = HEAP_GENERATE_EXCEPTIONS;
  for (const Huge& huge : kHuge) {
    check_raising(subject, "", kRaise, huge);
    check_raising(subject, " zero", kRaise | HEAP_ZERO_MEMORY, huge);
  }
  check_going_on(subject, kRaise);
  {
    Line line("%s %s raise by realloc null", subject.door.name, subject.name);
    void* block = observed(line, [&] { return subject.door.realloc(subject.heap, kRaise, nullptr, 100); });
    line.say(block == nullptr ? " null" : " block");
  }
  Line line("%s %s raise by realloc in place", subject.door.name, subject.name);
  void* block = subject.alloc(100);
  void* resized = observed(
      line, [&] { return subject.door.realloc(subject.heap, kRaise | HEAP_REALLOC_IN_PLACE_ONLY, block, 8 * kMiB); });
  line.say(resized == nullptr ? "" : " resized");
  tell_freed(line, subject, block);
}
