#include "scheduler.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/schedule.h"
#include "heap/heap.h"
#include "platform/fake/fake.h"

namespace rh::model {

namespace {

constexpr size_t kMostThreads = 8;
constexpr size_t kMostChoices = 1 << 14;
constexpr size_t kMostSteps = 1 << 20;
constexpr size_t kStack = 256 * 1024;
constexpr size_t kNone = kMostThreads;

// Far more than any part of the core waits for anything.
constexpr uint64_t kPauseMs = 20;
constexpr size_t kMostVain = 5000;

// A moment at which more than one thread could have gone on.
struct Choice {
  unsigned char options;  // a bit for each thread
  unsigned char taken;
  bool preempts;  // the thread at work could have gone on too: another one preempts it
};

// What a run tells; in memory shared with the process that asked for it.
struct Report {
  size_t count;
  Choice choices[kMostChoices];
  char failure[512];
};

struct Fiber {
  ucontext_t context = {};
  char* stack = nullptr;
  void (*body)() = nullptr;
  uint32_t thread = 0;  // of the fake platform
  Heap* heap = nullptr;
  bool ended = false;
  bool waits = false;  // backs off until another has done something
};

using Choices = std::vector<unsigned char>;

Report* report = nullptr;
Fiber fibers[kMostThreads];
size_t fiber_count = 0;
size_t at_work = kNone;
ucontext_t beginning;
const Choices* given = nullptr;
size_t steps = 0;
size_t vain = 0;    // times all waited in turn, and none did anything
pid_t process = 0;  // that plays the schedule

// Takes effect at once: what follows is the other thread's.
void go_on_with(size_t next) {
  size_t before = at_work;
  if (next == before) return;
  fibers[before].heap = own_heap_if_any();
  at_work = next;
  fake::become(fibers[next].thread);
  platform::set_thread_word(fibers[next].heap);
  swapcontext(&fibers[before].context, &fibers[next].context);
}

unsigned char ready() {
  unsigned options = 0;
  for (size_t number = 0; number < fiber_count; ++number)
    if (!fibers[number].ended && !fibers[number].waits) options |= 1u << number;
  return static_cast<unsigned char>(options);
}

// The thread after `number` among `options`, round and round.
size_t next_of(unsigned char options, size_t number) {
  do number = (number + 1) % fiber_count;
  while ((options >> number & 1) == 0);
  return number;
}

size_t choose(unsigned char options, size_t usual, bool preempts) {
  if ((options & (options - 1)) == 0) return usual;
  size_t place = report->count;
  if (place == kMostChoices) fail("more choices than are kept");
  size_t taken = place < given->size() ? (*given)[place] : usual;
  report->choices[report->count++] = {options, static_cast<unsigned char>(taken), preempts};
  return taken;
}

// In a process that a thread of the program forked the other threads are not there.
bool is_forked() { return getpid() != process; }

void wake_waiting() {
  vain = 0;
  for (Fiber& fiber : fibers) fiber.waits = false;
}

void back_off() {
  if (is_forked()) fail("the forked child waits for a thread that it has not got");
  if (at_work == kNone) fail("waits, and nobody else is there");
  fibers[at_work].waits = true;
  if (ready() == 0) {
    // Whoever waits only so long sees time pass.
    if (++vain > kMostVain) fail("deadlock: each thread waits");
    fake::advance(kPauseMs);
    for (Fiber& fiber : fibers) fiber.waits = false;
    fibers[at_work].waits = true;
    if (ready() == 0) fibers[at_work].waits = false;
  }
  unsigned char options = ready();
  go_on_with(choose(options, next_of(options, at_work), false));
}

void run_fiber() {
  fibers[at_work].body();
  if (is_forked()) _exit(0);
  fibers[at_work].ended = true;
  fake::end_thread(fibers[at_work].thread);
  wake_waiting();
  if (unsigned char options = ready(); options != 0) go_on_with(choose(options, next_of(options, at_work), false));
  setcontext(&beginning);
}

void make_threads(const Program& program) {
  fiber_count = program.threads.size();
  for (size_t number = 0; number < fiber_count; ++number) {
    Fiber& fiber = fibers[number];
    fiber.stack = static_cast<char*>(std::malloc(kStack));
    fiber.body = program.threads[number];
    fiber.thread = fake::make_thread();
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = kStack;
    makecontext(&fiber.context, run_fiber, 0);
  }
}

void run_threads() {
  Heap* own = own_heap_if_any();
  uint32_t self = fake::become(fibers[0].thread);
  platform::set_thread_word(fibers[0].heap);
  at_work = 0;
  swapcontext(&beginning, &fibers[0].context);
  at_work = kNone;
  fake::become(self);
  platform::set_thread_word(own);
}

[[noreturn]] void run(const Program& program, const Choices& choices) {
  given = &choices;
  process = getpid();
  alarm(20);
  fake::on_back_off(back_off);
  make_threads(program);
  program.prepare();
  run_threads();
  program.check();
  _exit(0);
}

// False when the schedule failed.
bool run_in_child(const Program& program, const Choices& choices) {
  report->count = 0;
  report->failure[0] = 0;
  pid_t child = fork();
  if (child == 0) run(program, choices);
  int status = 0;
  waitpid(child, &status, 0);
  if (status == 0) return true;
  if (report->failure[0] == 0)
    std::snprintf(report->failure, sizeof(report->failure), "ended with status %#x", static_cast<unsigned>(status));
  return false;
}

std::string describe_failure() {
  std::string text = report->failure;
  text += "; choices:";
  for (size_t place = 0; place < report->count; ++place) {
    text += ' ';
    text += static_cast<char>('0' + report->choices[place].taken);
  }
  return text;
}

struct Planned {
  Choices choices;
  unsigned preemptions;
};

// The schedules that leave the one just run at one choice behind those it was given.
void plan_others(const Planned& run, unsigned most, std::vector<Planned>* planned) {
  Choices choices = run.choices;
  for (size_t place = run.choices.size(); place < report->count; ++place) {
    const Choice& choice = report->choices[place];
    unsigned preemptions = run.preemptions + choice.preempts;
    for (unsigned char other = 0; other < kMostThreads && preemptions <= most; ++other) {
      if (other == choice.taken || (choice.options >> other & 1) == 0) continue;
      planned->push_back({choices, preemptions});
      planned->back().choices.push_back(other);
    }
    choices.push_back(choice.taken);
  }
}

}  // namespace

void fail(const char* what) {
  std::snprintf(report->failure, sizeof(report->failure), "%s", what);
  _exit(1);
}

void play(size_t number, void (*body)()) {
  Fiber& fiber = fibers[number];
  Heap* own = own_heap_if_any();
  uint32_t self = fake::become(fiber.thread);
  platform::set_thread_word(fiber.heap);
  body();
  fiber.heap = own_heap_if_any();
  fake::become(self);
  platform::set_thread_word(own);
}

Explored explore(const Program& program, unsigned preemptions) {
  if (report == nullptr) {
    report =
        static_cast<Report*>(mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  Explored explored;
  std::vector<Planned> planned = {{{}, 0}};
  while (!planned.empty()) {
    Planned next = std::move(planned.back());
    planned.pop_back();
    ++explored.schedules;
    if (!run_in_child(program, next.choices)) {
      explored.failure = describe_failure();
      break;
    }
    plan_others(next, preemptions, &planned);
  }
  return explored;
}

}  // namespace rh::model

namespace rh {

void schedule_point() {
  using namespace model;
  if (at_work == kNone || is_forked()) return;
  if (++steps > kMostSteps) fail("does not come to an end");
  wake_waiting();
  unsigned char options = ready();
  go_on_with(choose(options, at_work, true));
}

}  // namespace rh
