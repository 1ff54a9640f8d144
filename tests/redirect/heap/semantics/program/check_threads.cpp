#include "checks.h"
#include "thread.h"

#include <cstring>

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

// What changes a heap, or looks whether it is sound.
struct Call {
  const char* name;
  void (*make)(const Subject& subject, void*& block);
};
constexpr Call kCalls[] = {
    {"alloc", [](const Subject& subject, void*&) { subject.free(subject.alloc(100)); }},
    {"large alloc", [](const Subject& subject, void*&) { subject.free(subject.alloc(600 * kKiB)); }},
    {"free", [](const Subject& subject, void*& block) { block = subject.free(block) ? nullptr : block; }},
    {"realloc",
     [](const Subject& subject, void*& block) { block = subject.door.realloc(subject.heap, 0, block, 5000); }},
    {"lock",
     [](const Subject& subject, void*&) {
       if (subject.door.lock(subject.heap)) subject.door.unlock(subject.heap);
     }},
    {"validate", [](const Subject& subject, void*&) { subject.door.validate(subject.heap, 0, nullptr); }},
};

// Another thread, which makes a call when it is told to.
class Caller {
 public:
  Caller(const Subject& subject, const Call& of) : call(of), subject_(subject), block_(subject.alloc(100)) {
    ready_.wait();  // a thread that begins needs the process heap itself
  }
  ~Caller() {
    thread_.ended();
    if (block_ != nullptr) subject_.free(block_);
  }
  void operator()() {
    ready_.set();
    go_.wait();
    gone_.set();
    call.make(subject_, block_);
  }
  void begin() {
    go_.set();
    gone_.wait();
  }
  bool ended(DWORD patience = kPatience) const { return thread_.ended(patience); }

  const Call& call;

 private:
  const Subject& subject_;
  void* block_;
  Event ready_, go_, gone_;
  Thread thread_{*this};
};

}  // namespace

void check_threads(const Subject& subject) {
  for (size_t size : {size_t{1}, size_t{100}, size_t{5000}, 100 * kKiB, 2 * kMiB}) {
    if (size > subject.largest) continue;
    Line line("%s %s %Iu freed in another thread", subject.door.name, subject.name, size);
    void* block = nullptr;
    auto make = [&] { block = subject.alloc(size); };
    { Thread thread(make); }
    fill(block, size, 6);
    tell_block(line, subject, block);
    BOOL freed = FALSE;
    auto end = [&] { freed = holds(block, size, 6) && subject.free(block); };
    { Thread thread(end); }
    line.say(" freed=%d", freed);
  }
}

void check_lock(const Subject& subject) {
  const Door& door = subject.door;
  {
    Caller callers[] = {{subject, kCalls[0]}, {subject, kCalls[1]}, {subject, kCalls[2]},
                        {subject, kCalls[3]}, {subject, kCalls[4]}, {subject, kCalls[5]}};
    Line line("%s %s lock", door.name, subject.name);
    BOOL locked = observed(line, [&] { return door.lock(subject.heap); });
    line.say(" locked=%d", locked);
    // Nothing keeps them apart on a heap that cannot be locked, or that locks nothing and says it did.
    bool one_by_one = !locked || std::strstr(subject.name, "unserialized") != nullptr;
    for (Caller& caller : callers) {
      caller.begin();
      if (one_by_one) caller.ended();
    }
    Sleep(locked ? kGlance : 0);
    for (const Caller& caller : callers)
      line.say(" %s %s", caller.call.name, caller.ended(0) ? "does not wait" : "waits");
    if (locked) line.say(" unlocked=%d", observed(line, [&] { return door.unlock(subject.heap); }));
    for (const Caller& caller : callers) line.say(caller.ended() ? "" : " %s FOR EVER", caller.call.name);
  }
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
