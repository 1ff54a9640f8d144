// Ends in one of many ways while eight threads use all heaps:
//
//   endings WAY EXPECTED FAREWELL      WAY from the table at the end; FAREWELL is the DLL (farewell.h)
//
// Ends with FAREWELL_CODE when it got that far.
#include <windows.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "farewell.h"
#include "heaps.h"
#include "injected.h"
#include "support/pattern.h"

namespace heap_stress {
namespace {

constexpr int kThreads = 8;

std::atomic<int> g_at_work{0};
std::atomic<bool> g_stop{false};

void use_a_heap_of_its_own(contract::Random& random) {
  OsHeap own("heap of its own", HeapCreate(0, 0, 0));
  Block block;
  for (int at = 0; at < 20; ++at) make(block, own, random.size(20000), random.next(), at % 2 == 0);
  HeapDestroy(own.handle());
}

// Who ends while it holds a heap's lock leaves that to the others.
void lock_a_heap(contract::Random& random) {
  auto& heap = static_cast<OsHeap&>(*shared_heaps()[random.below(2)]);
  Block block;
  HeapLock(heap.handle());
  make(block, heap, random.size(2000), random.next(), true);
  drop(block);
  HeapUnlock(heap.handle());
}

DWORD WINAPI work(void* number) {
  contract::Random random(reinterpret_cast<std::uintptr_t>(number));
  const auto heaps = shared_heaps();
  Block blocks[60];
  for (int done = 0; !g_stop; ++done) {
    if (done == 200) ++g_at_work;
    Block& block = blocks[random.below(std::size(blocks))];
    if (block.handle) drop(block);
    make(block, *heaps[random.below(heaps.size())], random.size(20000), random.next(), random.one_in(3));
    if (random.one_in(30)) use_a_heap_of_its_own(random);
    if (random.one_in(10)) lock_a_heap(random);
  }
  return FAREWELL_CODE;
}

HMODULE g_farewell;

void set_farewell(Farewell farewell) {
  reinterpret_cast<SetFarewell*>(reinterpret_cast<void*>(GetProcAddress(g_farewell, "set_farewell")))(farewell);
}

void end_process() { ExitProcess(FAREWELL_CODE); }
void end_by_exit() { std::exit(FAREWELL_CODE); }
void terminate() { TerminateProcess(GetCurrentProcess(), FAREWELL_CODE); }

using End = void();

DWORD WINAPI call(void* end) {
  reinterpret_cast<End*>(end)();
  return 0;
}

void in_a_thread(End* end) {
  const HANDLE thread = CreateThread(nullptr, 0, call, reinterpret_cast<void*>(end), 0, nullptr);
  WaitForSingleObject(thread, INFINITE);
}

// Without its first thread the process ends with its last.
void leave_it_to_the_threads() {
  g_stop = true;
  ExitThread(FAREWELL_CODE);
}

struct Way {
  const char* name;
  void (*end)();
};

constexpr Way kWays[] = {
    {"return", [] {}},
    {"exit_process", end_process},
    {"exit_in_a_thread", [] { in_a_thread(end_by_exit); }},
    {"exit_process_in_a_thread", [] { in_a_thread(end_process); }},
    {"terminate", terminate},
    {"terminate_in_a_thread", [] { in_a_thread(terminate); }},
    {"with_the_last_thread", leave_it_to_the_threads},
    {"exit_in_the_farewell",
     [] {
       set_farewell(farewell_exit);
       end_process();
     }},
    {"terminate_in_the_farewell",
     [] {
       set_farewell(farewell_terminate);
       end_process();
     }},
    {"exit_in_an_unloaded_dll",
     [] {
       set_farewell(farewell_exit);
       FreeLibrary(g_farewell);
     }},
    {"terminate_in_an_unloaded_dll",
     [] {
       set_farewell(farewell_terminate);
       FreeLibrary(g_farewell);
     }},
};

int run(const char* name, const char* expected, const char* library) {
  for (const Way& way : kWays) {
    if (std::strcmp(way.name, name) != 0) continue;
    if (!is_injected_as(expected)) return 2;
    g_farewell = LoadLibraryA(library);
    if (!g_farewell) return 3;
    shared_heaps();
    for (std::uintptr_t at = 0; at < kThreads; ++at)
      CreateThread(nullptr, 0, work, reinterpret_cast<void*>(at), 0, nullptr);
    while (g_at_work < kThreads) Sleep(1);
    way.end();
    return FAREWELL_CODE;
  }
  return 4;
}

}  // namespace
}  // namespace heap_stress

int main(int count, char** words) { return count == 4 ? heap_stress::run(words[1], words[2], words[3]) : 5; }
