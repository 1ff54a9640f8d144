// Threads as Windows creates and ends them.
#include <gtest/gtest.h>
#include <process.h>
#include <windows.h>

#include <atomic>
#include <cstdlib>
#include <vector>

#include "support/library.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

std::atomic<int> done{0};

void use_heap() {
  for (std::size_t size = 1; size < MiB; size = size * 3 / 2 + 1) {
    void* block = realloc(malloc(size), size * 2);
    NEED(block, "%zu", size);
    free(block);
  }
  ++done;
}

DWORD WINAPI body(void*) {
  use_heap();
  return 0;
}

void run_created() {
  const HANDLE thread = CreateThread(nullptr, 0, body, nullptr, 0, nullptr);
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
}

unsigned __stdcall body_of_the_runtime(void*) {
  use_heap();
  return 0;
}

void run_of_the_runtime() {
  const auto thread = reinterpret_cast<HANDLE>(_beginthreadex(nullptr, 0, body_of_the_runtime, nullptr, 0, nullptr));
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
}

void run_in_the_pool() {
  const int before = done;
  NEED(QueueUserWorkItem(body, nullptr, WT_EXECUTEDEFAULT));
  NEED(eventually(10, [=] { return done > before; }));
}

// Created below kernel32: no runtime knows this thread.
void run_of_the_kernel() {
  using Create = LONG NTAPI(HANDLE*, ACCESS_MASK, void*, HANDLE, void*, void*, ULONG, SIZE_T, SIZE_T, SIZE_T, void*);
  auto* create = reinterpret_cast<Create*>(
      reinterpret_cast<void*>(GetProcAddress(GetModuleHandleA("ntdll.dll"), "NtCreateThreadEx")));
  NEED(create);
  HANDLE thread = nullptr;
  const LONG status = create(&thread, THREAD_ALL_ACCESS, nullptr, GetCurrentProcess(), reinterpret_cast<void*>(&body),
                             nullptr, 0, 0, 0, 0, nullptr);
  NEED(status >= 0, "0x%lx", static_cast<unsigned long>(status));
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
}

TEST(NativeThreads, OfEveryKind) {
  done = 0;
  for (int round = 0; round < 20; ++round) {
    run_created();
    run_of_the_runtime();
    run_in_the_pool();
    run_of_the_kernel();
  }
  EXPECT_EQ(done, 80);
}

// ---- ways to end --------------------------------------------------------------------------------

std::atomic<void*> left[10];

void leave_some() {
  std::vector<void*> own;
  for (std::size_t at = 0; at < 50; ++at) own.push_back(malloc(at * 40 + 1));
  for (std::size_t at = 0; at < 50; ++at) at % 5 == 0 ? left[at / 5] = own[at] : (free(own[at]), nullptr);
}

DWORD WINAPI returns(void*) {
  leave_some();
  return 0;
}

DWORD WINAPI exits(void*) {
  leave_some();
  ExitThread(0);
}

std::atomic<bool> rests{false};

DWORD WINAPI is_terminated(void*) {
  leave_some();
  rests = true;
  Sleep(INFINITE);
  return 0;
}

void end_one(LPTHREAD_START_ROUTINE how) {
  rests = false;
  const HANDLE thread = CreateThread(nullptr, 64 * KiB, how, nullptr, STACK_SIZE_PARAM_IS_A_RESERVATION, nullptr);
  NEED(thread, "error %lu", GetLastError());
  if (how == is_terminated) {
    while (!rests) Sleep(0);
    TerminateThread(thread, 0);
  }
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
  for (auto& block : left) free(block.exchange(nullptr));
}

std::size_t heaps() {
  auto* get = CONTRACT_FIND(rh_stats_get);
  rh_stats stats = {};
  stats.struct_size = sizeof stats;
  return get && get(&stats) ? stats.heaps : 0;
}

int end_many(LPTHREAD_START_ROUTINE how, int count, std::size_t most_heaps) {
  std::size_t early = 0;
  for (int at = 0; at < count; ++at) {
    end_one(how);
    if (at == count / 5) early = resident();
  }
  NEED(heaps() <= most_heaps, "%zu heaps", heaps());
  NEED(how == is_terminated || resident() < early + 6 * MiB, "%zu KiB after a fifth, %zu after all", early / KiB,
       resident() / KiB);
  std::printf("%d threads: %zu heaps\n", count, heaps());
  return 0;
}

SCENARIO(threads_return) { return end_many(returns, 500, 8); }
SCENARIO(threads_exit) { return end_many(exits, 500, 8); }

// These ends are not announced; the heap finds out within a second, and creates new heaps until then. What the system
// keeps of their stacks does not belong to the heap.
SCENARIO(threads_are_terminated) {
  end_many(is_terminated, 500, 500);
  const std::size_t before = heaps();
  nap(1.2);
  end_many(is_terminated, 500, before + 500);
  nap(1.2);
  for (int at = 0; at < 50; ++at) {
    end_one(returns);
    nap(0.01);
  }
  NEED(heaps() <= before + 500, "%zu heaps, then %zu", before, heaps());
  return 0;
}

TEST(NativeThreads, ThatReturnAreNotPaidForTwice) { EXPECT_SCENARIO("threads_return"); }
TEST(NativeThreads, ThatExitAreNotPaidForTwice) { EXPECT_SCENARIO("threads_exit"); }
TEST(NativeThreads, ThatAreTerminatedAreFoundOut) { EXPECT_SCENARIO("threads_are_terminated"); }

}  // namespace
