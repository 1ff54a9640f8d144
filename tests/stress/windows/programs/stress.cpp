// Every heap of a Windows process at once, every byte of every block checked whenever it is met again.
//
//   stress THREADS SECONDS SEED EXPECTED [late=DLL] [break=WAY]
//
// Each of THREADS workers makes, resizes, frees and hands over blocks of all heaps through slots that all share, makes
// heaps of its own that it destroys with blocks in them, and now and then ends and is born again, leaving its blocks to
// the others. EXPECTED is what has to serve them at the end: plain, both, heap or crt (injected.h). `late` loads that
// DLL when half of the time is over, with blocks alive. `break` spoils a block once in a while (heaps.h), and has to be
// seen. The same SEED makes the same decisions in each worker; how the workers meet is the machine's affair.
#include <windows.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "heaps.h"
#include "injected.h"
#include "worker.h"

namespace heap_stress {
namespace {

std::atomic<unsigned long> g_destroyed{0};  // heaps

// ---- a heap of a worker's own ------------------------------------------------------------------

struct HeapKind {
  DWORD flags;
  std::size_t most;  // 0: it grows
};

constexpr HeapKind kHeapKinds[] = {
    {0, 0},         {0, 0}, {HEAP_NO_SERIALIZE, 0}, {HEAP_GENERATE_EXCEPTIONS, 0}, {HEAP_CREATE_ENABLE_EXECUTE, 0},
    {0, 2048 * KiB}};

// Made, filled and destroyed with its blocks.
class OwnHeap {
 public:
  explicit OwnHeap(Random& random)
      : random_(random), kind_(kHeapKinds[random.below(std::size(kHeapKinds))]),
        heap_("heap of its own", HeapCreate(kind_.flags, 0, kind_.most)) {
    if (!heap_.handle()) fail("has no heap", {&heap_, nullptr, 0, 0}, GetLastError());
  }

  void run() {
    for (Block& block : blocks_) make(block, heap_, pick_size(), random_.next(), random_.one_in(2));
    for (std::size_t step = 0; step < std::size(blocks_); ++step) {
      Block& block = blocks_[random_.below(std::size(blocks_))];
      if (!block.handle) continue;
      random_.one_in(3) ? drop(block) : resize(block, pick_size(), random_.one_in(2));
    }
    for (const Block& block : blocks_) {
      if (block.handle && breaks(Break::destroyed)) flip_a_byte(block);
      if (block.handle) check(block, "changed before its heap was destroyed");
    }
    if (random_.one_in(4)) look_around();
    if (!HeapDestroy(heap_.handle())) fail("has a heap that was not destroyed", blocks_[0]);
  }

 private:
  // All blocks are valid, and each is met once on a walk.
  void look_around() {
    std::size_t live = 0;
    std::size_t met = 0;
    for (const Block& block : blocks_) {
      live += block.handle != nullptr;
      if (block.handle && !HeapValidate(heap_.handle(), 0, block.handle)) fail("is not valid", block);
    }
    PROCESS_HEAP_ENTRY entry = {};
    while (HeapWalk(heap_.handle(), &entry)) met += is_block(entry);
    if (met != live) fail("is in a heap whose walk meets others", {&heap_, nullptr, live, 0}, met);
  }

  bool is_block(const PROCESS_HEAP_ENTRY& entry) const {
    if (!(entry.wFlags & PROCESS_HEAP_ENTRY_BUSY)) return false;
    for (const Block& block : blocks_)
      if (block.handle && block.handle == entry.lpData) return true;
    return false;
  }

  // What has a limit refuses blocks of half a mebibyte.
  std::size_t pick_size() { return random_.size(kind_.most == 0 && random_.one_in(20) ? 300 * KiB : 4 * KiB); }

  Random& random_;
  const HeapKind kind_;
  OsHeap heap_;
  Block blocks_[60];
};

// ---- a worker ----------------------------------------------------------------------------------

class HeapWorker final : public Worker {
 public:
  using Worker::Worker;

 private:
  bool digress(Random& random) override {
    if (random.one_in(300)) {
      OwnHeap(random).run();
      ++g_destroyed;
    } else if (random.one_in(500)) {
      lock_a_heap(random);
    } else if (random.one_in(4000)) {
      HeapCompact(one_heap(random).handle(), 0);
    } else {
      return false;
    }
    return true;
  }

  // The process heap or the private one that all share.
  static OsHeap& one_heap(Random& random) { return static_cast<OsHeap&>(*shared_heaps()[random.below(2)]); }

  // Others wait, and it goes on by itself.
  static void lock_a_heap(Random& random) {
    OsHeap& heap = one_heap(random);
    HeapLock(heap.handle());
    Block block;
    make(block, heap, random.size(4 * KiB), random.next(), true);
    drop(block);
    HeapUnlock(heap.handle());
  }
};

struct Place {
  Shared* shared;
  std::uint64_t seed;
};

DWORD WINAPI live(void* of) {
  const auto* place = static_cast<const Place*>(of);
  HeapWorker(*place->shared, place->seed).live();
  return 0;
}

void wait_for(HANDLE thread) {
  if (!thread || WaitForSingleObject(thread, INFINITE) != WAIT_OBJECT_0) {
    std::fprintf(stderr, "stress: a thread is missing: error %lu\n", GetLastError());
    std::exit(1);
  }
  CloseHandle(thread);
}

// A place among the workers: one life after the other, each in a thread of its own.
DWORD WINAPI live_again_and_again(void* of) {
  Place place = *static_cast<const Place*>(of);
  while (!place.shared->stop) {
    place.seed = mix(place.seed);
    wait_for(CreateThread(nullptr, 0, live, &place, 0, nullptr));
  }
  return 0;
}

// ---- the whole ---------------------------------------------------------------------------------

struct Settings {
  std::size_t threads = 0;
  DWORD duration_ms = 0;
  std::uint64_t seed = 0;
  const char* expected = nullptr;
  const char* late = nullptr;
};

// Threads that are suspended while a DLL comes: before they have begun, and in the middle of their work.
class Suspended {
 public:
  explicit Suspended(Place place) : place_(place) {
    for (HANDLE& thread : threads_) thread = CreateThread(nullptr, 0, wait_and_live, this, CREATE_SUSPENDED, nullptr);
    ResumeThread(threads_[0]);
    while (!began_) Sleep(1);
    SuspendThread(threads_[0]);
  }
  ~Suspended() {
    go_ = true;
    for (const HANDLE thread : threads_) ResumeThread(thread);
    for (const HANDLE thread : threads_) wait_for(thread);
  }
  Suspended(const Suspended&) = delete;
  Suspended& operator=(const Suspended&) = delete;

 private:
  // Not in the system meanwhile, where it might hold what the loader needs.
  static DWORD WINAPI wait_and_live(void* of) {
    auto* self = static_cast<Suspended*>(of);
    self->began_ = true;
    while (!self->go_) YieldProcessor();
    return live(&self->place_);
  }

  Place place_;
  std::atomic<bool> began_{false};
  std::atomic<bool> go_{false};
  HANDLE threads_[3] = {};
};

void come_late(const char* library, const Place& place) {
  const Suspended suspended(place);
  if (LoadLibraryA(library)) return;
  std::fprintf(stderr, "stress: cannot load %s: error %lu\n", library, GetLastError());
  std::exit(1);
}

// Next to nothing is left of the tens of megabytes that were in use, however long it took.
bool all_came_back() {
  constexpr std::size_t kMost = 16 * 1024 * KiB;
  const std::size_t left = in_use_of_reheap();
  if (left > kMost) std::fprintf(stderr, "stress: %zu bytes are left in use\n", left);
  return left <= kMost;
}

int run(const Settings& settings) {
  const std::unique_ptr<Shared> shared(new Shared{shared_heaps(), [](Random& random) { return random.size(MiB); }});
  std::vector<Place> places;
  std::vector<HANDLE> threads;
  for (std::size_t at = 0; at < settings.threads; ++at)
    places.push_back({shared.get(), mix(settings.seed * 4096 + at)});
  for (Place& place : places) threads.push_back(CreateThread(nullptr, 0, live_again_and_again, &place, 0, nullptr));
  Sleep(settings.duration_ms / 2);
  if (settings.late) come_late(settings.late, {shared.get(), mix(settings.seed)});
  Sleep(settings.duration_ms / 2);
  shared->stop = true;
  for (const HANDLE thread : threads) wait_for(thread);
  shared->drain();
  std::printf("%lu operations in %lu lives, %lu heaps destroyed, all contents as they should be\n",
              shared->operations.load(), shared->lives.load(), g_destroyed.load());
  return all_came_back() && is_injected_as(settings.expected) ? 0 : 1;
}

Break break_of(const std::string& way) {
  constexpr const char* kWays[] = {"nothing", "contents", "zero", "size", "resize", "destroyed"};
  for (std::size_t at = 0; at < std::size(kWays); ++at)
    if (way == kWays[at]) return static_cast<Break>(at);
  std::fprintf(stderr, "stress: nothing can be broken by %s\n", way.c_str());
  std::exit(2);
}

}  // namespace
}  // namespace heap_stress

int main(int count, char** words) {
  if (count < 5) {
    std::fprintf(stderr, "usage: stress THREADS SECONDS SEED EXPECTED [late=DLL] [break=WAY]\n");
    return 2;
  }
  heap_stress::Settings settings = {std::strtoul(words[1], nullptr, 10),
                                    static_cast<DWORD>(std::strtod(words[2], nullptr) * 1000),
                                    std::strtoul(words[3], nullptr, 10), words[4], nullptr};
  for (int at = 5; at < count; ++at) {
    if (std::strncmp(words[at], "late=", 5) == 0) settings.late = words[at] + 5;
    if (std::strncmp(words[at], "break=", 6) == 0) heap_stress::set_break(heap_stress::break_of(words[at] + 6));
  }
  return heap_stress::run(settings);
}
