#include "checks.h"
#include "thread.h"

namespace {

constexpr DWORD kGlance = 150;  // how long something is watched that must not happen

class Event {
 public:
  ~Event() { CloseHandle(handle_); }
  void set() { SetEvent(handle_); }
  void wait() { WaitForSingleObject(handle_, kPatience); }

 private:
  HANDLE handle_ = CreateEventA(nullptr, TRUE, FALSE, nullptr);
};

// While this thread has the heap's lock, another calls what would change the heap.
template <typename F>
void tell_waiting(const Subject& subject, const char* what, F call) {
  Line line("%s %s lock and %s", subject.door.name, subject.name, what);
  Event ready, go, gone;
  auto work = [&] {
    ready.set();  // a thread that begins needs the process heap itself
    go.wait();
    gone.set();
    call();
  };
  Thread thread(work);
  ready.wait();
  BOOL locked = observed(line, [&] { return subject.door.lock(subject.heap); });
  line.say(" locked=%d", locked);
  go.set();
  gone.wait();
  line.say(thread.ended(kGlance) ? " does not wait" : " waits");
  if (locked) line.say(" unlocked=%d", observed(line, [&] { return subject.door.unlock(subject.heap); }));
  line.say(thread.ended() ? " and ends" : " FOR EVER");
}

}  // namespace

void check_threads(const Subject& subject) {
  for (size_t size : {size_t{1}, size_t{100}, size_t{5000}, 100 * kKiB, 2 * kMiB}) {
    if (size > subject.largest) continue;
    Line line("%s %s %Iu freed in another thread", subject.door.name, subject.name, size);
    void* block = nullptr;
    auto make = [&] { block = subject.alloc(size); };
    {
      Thread thread(make);
    }
    fill(block, size, 6);
    tell_block(line, subject, block);
    BOOL freed = FALSE;
    auto end = [&] { freed = holds(block, size, 6) && subject.free(block); };
    {
      Thread thread(end);
    }
    line.say(" freed=%d", freed);
  }
}

void check_lock(const Subject& subject) {
  const Door& door = subject.door;
  void* early = subject.alloc(100);
  void* other = subject.alloc(200);
  tell_waiting(subject, "alloc", [&] { subject.free(subject.alloc(100)); });
  tell_waiting(subject, "large alloc", [&] { subject.free(subject.alloc(600 * kKiB)); });
  tell_waiting(subject, "free", [&] { subject.free(early); });
  tell_waiting(subject, "realloc", [&] { other = door.realloc(subject.heap, 0, other, 5000); });
  tell_waiting(subject, "lock", [&] {
    if (door.lock(subject.heap)) door.unlock(subject.heap);
  });
  tell_waiting(subject, "validate", [&] { door.validate(subject.heap, 0, nullptr); });
  subject.free(other);

  Line line("%s %s nested lock", door.name, subject.name);
  Event ready, go;
  auto alloc = [&] {
    ready.set();
    go.wait();
    subject.free(subject.alloc(100));
  };
  Thread thread(alloc);
  ready.wait();
  BOOL first = observed(line, [&] { return door.lock(subject.heap); });
  BOOL second = observed(line, [&] { return door.lock(subject.heap); });
  line.say(" %d %d", first, second);
  void* block = observed(line, [&] { return subject.alloc(100); });
  block = observed(line, [&] { return door.realloc(subject.heap, 0, block, 70000); });
  tell_block(line, subject, block);
  tell_freed(line, subject, block);
  go.set();
  if (!second) return;
  line.say(" %d", observed(line, [&] { return door.unlock(subject.heap); }));
  line.say(thread.ended(kGlance) ? " open" : " still locked");
  line.say(" %d", observed(line, [&] { return door.unlock(subject.heap); }));
  line.say(thread.ended() ? " open" : " STILL LOCKED");
}
