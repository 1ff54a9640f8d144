// A program that closes one of its handles twice closes by that whatever has got the number meanwhile: never what the
// library waits for, or another object would be waited for in its place.
#include <gtest/gtest.h>
#include <windows.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <vector>

#include "support/pattern.h"
#include "support/process.h"

using namespace contract;

namespace {

constexpr int kThreads = 8;

HANDLE handle_of(std::uintptr_t number) { return reinterpret_cast<HANDLE>(number); }

std::set<std::uintptr_t> open_handles() {
  std::set<std::uintptr_t> open;
  for (std::uintptr_t number = 4; number < 0x4000; number += 4) {
    DWORD flags = 0;
    if (GetHandleInformation(handle_of(number), &flags)) open.insert(number);
  }
  return open;
}

struct Together {
  std::atomic<int> running{kThreads};
};

DWORD WINAPI allocate(void* together) {
  void* block = malloc(1000);
  NEED(block);
  // Each has a heap of its own, for all are there at once.
  auto& running = static_cast<Together*>(together)->running;
  for (--running; running != 0;) SwitchToThread();
  free(block);
  return 0;
}

void run_threads() {
  Together together;
  HANDLE threads[kThreads];
  for (HANDLE& thread : threads) {
    thread = CreateThread(nullptr, 0, allocate, &together, 0, nullptr);
    NEED(thread, "error %lu", GetLastError());
  }
  WaitForMultipleObjects(kThreads, threads, TRUE, INFINITE);
  for (HANDLE thread : threads) CloseHandle(thread);
}

TEST(Handles, AreNotClosedByMistake) {
  const std::set<std::uintptr_t> before = open_handles();
  run_threads();
  for (const std::uintptr_t number : open_handles())
    if (before.count(number) == 0) CloseHandle(handle_of(number));

  std::vector<HANDLE> events;
  for (int count = 0; count < 64; ++count) events.push_back(CreateEventW(nullptr, FALSE, TRUE, nullptr));
  run_threads();
  for (HANDLE event : events) {
    EXPECT_EQ(WaitForSingleObject(event, 0), static_cast<DWORD>(WAIT_OBJECT_0)) << "somebody else waited for it";
    CloseHandle(event);
  }
}

}  // namespace
