// Out of memory in the heaps that Windows itself has: refused as Windows does, everything handed out stays whole, and
// service goes on. The limit is a job's; where the system does not enforce one, reheap.dll's own calls are counted
// (contract/support/windows/commit_limit.cpp).
//
//   limits NAME      of a scenario below; CONTRACT_COMMIT_LIMIT is the limit in bytes
#include <windows.h>

#include <atomic>
#include <limits>

#include "injected.h"
#include "support/chain.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

namespace contract {
int run_scenario_here(const char* name);
}

using namespace contract;

namespace {

constexpr DWORD kNoMemory = static_cast<DWORD>(STATUS_NO_MEMORY);

using heap_stress::is_of_reheap;

std::size_t limit() { return memory_limit(); }

bool is_served(HANDLE heap) {
  void* const block = HeapAlloc(heap, 0, 1);
  const bool ours = is_of_reheap(block);
  HeapFree(heap, 0, block);
  return ours;
}

class HeapChain : public Chain {
 public:
  explicit HeapChain(HANDLE heap) : heap_(heap) {}

  void release(void* block) override {
    NEED(HeapSize(heap_, 0, block) == static_cast<Link*>(block)->size);
    NEED(HeapFree(heap_, 0, block));
  }

  // False when it is refused, as it should be then.
  bool add(std::size_t size, DWORD flags = 0) {
    SetLastError(ERROR_SUCCESS);
    void* const block = HeapAlloc(heap_, flags, size);
    if (!block) {
      NEED(GetLastError() == ERROR_NOT_ENOUGH_MEMORY, "the last error is %lu", GetLastError());
      return false;
    }
    NEED(is_of_reheap(block), "of %zu bytes", size);
    NEED(!(flags & HEAP_ZERO_MEMORY) || all_zero(block, size));
    Chain::add(block, size);
    return true;
  }

  // Stops by itself well above the limit: a heap that does not notice it must not take the machine down.
  void exhaust(Random& random, std::size_t most) {
    while (add(sizeof(Link) + random.size(most), random.one_in(4) ? HEAP_ZERO_MEMORY : 0))
      NEED(bytes() < 2 * limit(), "the limit of %zu MiB is not noticed", limit() / MiB);
  }

  void check() const {
    Chain::check();
    for (const Link* link = first(); link; link = link->next)
      NEED(HeapSize(heap_, 0, link) == link->size, "block of %zu", link->size);
  }

 private:
  const HANDLE heap_;
};

// A block that cannot grow stays as it was.
void check_refused_growth(HANDLE heap, const HeapChain& chain) {
  Link* const link = chain.first();
  SetLastError(ERROR_SUCCESS);
  NEED(HeapReAlloc(heap, 0, link, 2 * limit()) == nullptr);
  NEED(GetLastError() == ERROR_NOT_ENOUGH_MEMORY, "the last error is %lu", GetLastError());
  chain.check();
}

int exhaust_and_go_on(HANDLE heap, std::size_t most) {
  HeapChain chain(heap);
  Random random(most);
  for (int round = 0; round < 2; ++round) {
    chain.exhaust(random, most);
    const std::size_t full = chain.bytes();
    NEED(full > limit() / 4, "only %zu of %zu MiB could be had", full / MiB, limit() / MiB);
    chain.check();
    check_refused_growth(heap, chain);
    chain.free_until(full / 2);
    while (chain.bytes() < full / 8 * 5)
      NEED(chain.add(sizeof(Link) + random.size(4 * KiB)), "half of %zu MiB was freed", full / MiB);
    chain.free_until(full / 8);
  }
  chain.free_until(0);
  return 0;
}

SCENARIO(process_heap_small) { return exhaust_and_go_on(GetProcessHeap(), 4 * KiB); }
SCENARIO(process_heap_mixed) { return exhaust_and_go_on(GetProcessHeap(), 2 * MiB); }
SCENARIO(private_heap_small) { return exhaust_and_go_on(HeapCreate(0, 0, 0), 4 * KiB); }
SCENARIO(private_heap_mixed) { return exhaust_and_go_on(HeapCreate(HEAP_NO_SERIALIZE, 0, 0), 2 * MiB); }

// What a private heap had can be had by others once it is destroyed.
SCENARIO(destroyed_heap_gives_back) {
  Random random(1);
  for (int round = 0; round < 4; ++round) {
    const HANDLE heap = HeapCreate(0, 0, 0);
    NEED(heap);
    HeapChain inside(heap);
    inside.exhaust(random, round % 2 ? 4 * KiB : 300 * KiB);
    inside.check();
    NEED(inside.bytes() > limit() / 4, "in round %d only %zu MiB could be had", round, inside.bytes() / MiB);
    NEED(HeapDestroy(heap));
    HeapChain outside(GetProcessHeap());
    while (outside.bytes() < limit() / 4) NEED(outside.add(sizeof(Link) + random.size(40 * KiB)));
    outside.free_until(0);
  }
  return 0;
}

SCENARIO(sizes_beyond_all_memory) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  void* const block = HeapAlloc(GetProcessHeap(), 0, 100);
  for (const std::size_t size : {kMost, kMost - 15, kMost - 4096, kMost / 2 + 1, limit() * 2}) {
    SetLastError(ERROR_SUCCESS);
    NEED(HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, size) == nullptr, "%zu", size);
    NEED(GetLastError() == ERROR_NOT_ENOUGH_MEMORY, "%zu: the last error is %lu", size, GetLastError());
    NEED(HeapReAlloc(GetProcessHeap(), 0, block, size) == nullptr, "%zu", size);
  }
  NEED(HeapSize(GetProcessHeap(), 0, block) == 100);
  NEED(HeapFree(GetProcessHeap(), 0, block));
  return 0;
}

// ---- exceptions --------------------------------------------------------------------------------

int g_raised = 0;

LONG CALLBACK count_and_go_on(EXCEPTION_POINTERS* exception) {
  if (exception->ExceptionRecord->ExceptionCode != kNoMemory) return EXCEPTION_CONTINUE_SEARCH;
  NEED((exception->ExceptionRecord->ExceptionFlags & EXCEPTION_NONCONTINUABLE) == 0);
  ++g_raised;
  return EXCEPTION_CONTINUE_EXECUTION;
}

// Raised once, and NULL for who goes on.
void need_raised(HANDLE heap, DWORD flags) {
  void* const block = HeapAlloc(heap, 0, 1000);
  NEED(block);
  fill(block, 1000, 5);
  for (const std::size_t size : {limit() * 2, std::numeric_limits<std::size_t>::max() - 100}) {
    g_raised = 0;
    NEED(HeapAlloc(heap, flags, size) == nullptr);
    NEED(g_raised == 1, "%d times for %zu", g_raised, size);
    NEED(HeapReAlloc(heap, flags, block, size) == nullptr);
    NEED(g_raised == 2, "%d times for %zu", g_raised - 1, size);
  }
  NEED(intact(block, 1000, 5));
  NEED(HeapFree(heap, flags, block));
}

SCENARIO(exceptions) {
  AddVectoredExceptionHandler(1, count_and_go_on);
  need_raised(GetProcessHeap(), HEAP_GENERATE_EXCEPTIONS);
  need_raised(HeapCreate(0, 0, 0), HEAP_GENERATE_EXCEPTIONS);
  need_raised(HeapCreate(HEAP_GENERATE_EXCEPTIONS, 0, 0), 0);
  g_raised = 0;
  NEED(HeapAlloc(GetProcessHeap(), 0, limit() * 2) == nullptr);
  NEED(g_raised == 0);
  // In the middle of small blocks, too.
  HeapChain chain(GetProcessHeap());
  while (chain.add(2000, HEAP_GENERATE_EXCEPTIONS)) NEED(g_raised == 0);
  NEED(g_raised == 1);
  chain.check();
  chain.free_until(0);
  return 0;
}

// ---- threads -----------------------------------------------------------------------------------

std::atomic<int> g_finished{0};

DWORD WINAPI exhaust_in_thread(void* seed) {
  Random random(reinterpret_cast<std::uintptr_t>(seed));
  for (int round = 0; round < 3; ++round) {
    const HANDLE own = round % 2 ? HeapCreate(0, 0, 0) : nullptr;
    HeapChain chain(own ? own : GetProcessHeap());
    // A heap that cannot be served by reheap for want of memory is served by Windows, without a limit.
    if (round % 2 && (!own || !is_served(own))) continue;
    chain.exhaust(random, round % 3 ? 1000 : 100 * KiB);
    chain.check();
    chain.free_until(chain.bytes() / 2);
    if (own) NEED(HeapDestroy(own));
    own ? chain.forget() : chain.free_until(0);
  }
  ++g_finished;
  return 0;
}

SCENARIO(four_threads) {
  HANDLE threads[4];
  for (std::uintptr_t at = 0; at < 4; ++at)
    threads[at] = CreateThread(nullptr, 256 * KiB, exhaust_in_thread, reinterpret_cast<void*>(at + 1), 0, nullptr);
  for (const HANDLE thread : threads) WaitForSingleObject(thread, INFINITE);
  NEED(g_finished == 4);
  HeapChain chain(GetProcessHeap());
  Random random(9);
  while (chain.bytes() < limit() / 8)
    NEED(chain.add(sizeof(Link) + random.size(8 * KiB)), "after all were freed, at %zu MiB", chain.bytes() / MiB);
  chain.free_until(0);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  enforce_limits();
  return run_scenario_here(words[1]);
}
