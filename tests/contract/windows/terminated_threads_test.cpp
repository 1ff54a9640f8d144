// TerminateThread ends threads wherever they are, inside the allocator too: the others continue, and no block is held
// twice.
#include <gtest/gtest.h>
#include <windows.h>

#include <tlhelp32.h>

#include <atomic>
#include <cstdlib>

#include "idle.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

// Blocks that threads pass to each other: the owner fills what it puts here.
struct Slot {
  std::atomic<unsigned char*> block{nullptr};
};
Slot slots[32];

std::atomic<bool> stop{false};
std::atomic<unsigned> begun{0};
std::atomic<unsigned> damaged{0};

// The first eight bytes hold the length; the last one shows whether another thread writes there.
unsigned char* make(std::uint64_t size) {
  auto* block = static_cast<unsigned char*>(malloc(size));
  if (block == nullptr) return nullptr;
  std::memcpy(block, &size, sizeof size);
  std::memset(block + sizeof size, static_cast<int>(size), size - sizeof size);
  return block;
}

void drop(unsigned char* block) {
  if (block == nullptr) return;
  std::uint64_t size = 0;
  std::memcpy(&size, block, sizeof size);
  const bool whole = size < MiB && block[size / 2] == static_cast<unsigned char>(size) &&
                     block[size - 1] == static_cast<unsigned char>(size);
  if (!whole) ++damaged;
  free(block);
}

DWORD WINAPI churn(void* steps) {
  ++begun;
  Random random(GetCurrentThreadId());
  while (!stop) {
    const std::size_t most = random.one_in(3) ? 200 * KiB : 1000;
    unsigned char* block = make(32 + random.below(most));
    drop(slots[random.below(32)].block.exchange(block));
    if (steps != nullptr) ++*static_cast<std::atomic<unsigned>*>(steps);
  }
  return 0;
}

// Whether a suspended thread is in this program's code, including the allocator's. In a system call it may hold one of
// Wine's locks, which nobody takes over: a thread terminated within VirtualAlloc blocks every thread that calls it, on
// any heap.
bool is_in_this_program(HANDLE thread) {
  CONTEXT context = {};
  context.ContextFlags = CONTEXT_CONTROL;
  NEED(GetThreadContext(thread, &context), "error %lu", GetLastError());
#if defined(_WIN64)
  const std::uintptr_t at = context.Rip;
#else
  const std::uintptr_t at = context.Eip;
#endif
  const auto base = reinterpret_cast<std::uintptr_t>(GetModuleHandleW(nullptr));
  const auto dos = reinterpret_cast<const IMAGE_DOS_HEADER*>(base);
  const auto headers = reinterpret_cast<const IMAGE_NT_HEADERS*>(base + static_cast<std::uintptr_t>(dos->e_lfanew));
  return at - base < headers->OptionalHeader.SizeOfImage;
}

void terminate(HANDLE victim) {
  for (;; SwitchToThread()) {
    SuspendThread(victim);
    if (is_in_this_program(victim)) break;
    ResumeThread(victim);
  }
  TerminateThread(victim, 0);
  WaitForSingleObject(victim, INFINITE);
  CloseHandle(victim);
}

SCENARIO(threads_terminated_anywhere) {
  static std::atomic<unsigned> steps[3];
  HANDLE workers[3];
  for (int at = 0; at < 3; ++at) workers[at] = CreateThread(nullptr, 0, churn, &steps[at], 0, nullptr);
  for (int round = 0; round < 20; ++round) {
    const HANDLE victim = CreateThread(nullptr, 0, churn, nullptr, 0, nullptr);
    NEED(victim, "error %lu", GetLastError());
    // Not before: while it enters the program it holds the loader lock, and no thread could then take that lock to end.
    NEED(eventually(20, [&] { return begun == 3u + round + 1; }), "round %d: it does not begin", round);
    Sleep(static_cast<DWORD>(round % 4));
    terminate(victim);
    for (auto& count : steps) {
      const unsigned before = count;
      NEED(eventually(20, [&] { return count != before; }), "round %d: a thread stands still", round);
    }
    drop(make(100 * KiB));
  }
  stop = true;
  for (const HANDLE worker : workers) NEED(WaitForSingleObject(worker, 20000) == WAIT_OBJECT_0);
  for (auto& slot : slots) drop(slot.block);
  NEED(damaged == 0, "%u blocks damaged", damaged.load());
  return 0;
}

// The thread that returns memory, recognised by not being one of the program's.
HANDLE open_helper() {
  HANDLE found = nullptr;
  const HANDLE threads = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
  THREADENTRY32 entry = {};
  entry.dwSize = sizeof entry;
  for (BOOL more = Thread32First(threads, &entry); more; more = Thread32Next(threads, &entry)) {
    const bool other = entry.th32OwnerProcessID == GetCurrentProcessId() && entry.th32ThreadID != GetCurrentThreadId();
    if (other && !found) found = OpenThread(THREAD_TERMINATE | SYNCHRONIZE, FALSE, entry.th32ThreadID);
  }
  CloseHandle(threads);
  return found;
}

// A program that terminates all threads but its own also hits the helper: from then on threads that free memory return
// it.
SCENARIO(helper_terminated) {
  const std::size_t before = resident();
  free_much();
  HANDLE helper = nullptr;
  NEED(eventually(5, [&] { return (helper = open_helper()) != nullptr; }), "nobody is there");
  TerminateThread(helper, 0);
  NEED(WaitForSingleObject(helper, 5000) == WAIT_OBJECT_0);
  for (int round = 0; round < 10; ++round) {
    free_much();
    nap(0.05);
  }
  NEED(resident() < before + 24 * MiB, "%zu MiB stay", (resident() - before) / MiB);
  NEED(threads() == 1, "%d threads", threads());
  return 0;
}

TEST(TerminatedThreads, TheHelperToo) { EXPECT_SCENARIO("helper_terminated"); }

TEST(TerminatedThreads, StopNobody) { EXPECT_SCENARIO("threads_terminated_anywhere", {.deadline = 100}); }

}  // namespace
