// A program may handle the overflow of a stack and go on, wherever the stack ended: within the allocator too.
#include <gtest/gtest.h>
#include <malloc.h>
#include <windows.h>

#include <atomic>
#include <cstdlib>
#include <utility>

#include "support/pattern.h"
#include "support/scenario.h"

using namespace contract;

namespace {

constexpr int kRounds = 40;
constexpr std::size_t kKept = 1 << 16;

Random choice(1);
void* kept[kKept];
std::size_t calls = 0;

CONTEXT before;  // the call that goes deeper and deeper
std::atomic<bool> overflowed{false}, damage{false};
std::atomic<int> rounds{0};

LONG WINAPI go_back(EXCEPTION_POINTERS* exception) {
  if (exception->ExceptionRecord->ExceptionCode != EXCEPTION_STACK_OVERFLOW) return EXCEPTION_CONTINUE_SEARCH;
  overflowed = true;
  *exception->ContextRecord = before;
  return EXCEPTION_CONTINUE_EXECUTION;
}

// The stack may end within free.
void let_go(void*& place) {
  void* block = std::exchange(place, nullptr);
  if (block != nullptr && *static_cast<void**>(block) != block) damage = true;
  free(block);
}

[[gnu::noinline]] int deeper(int depth) {
  if (++calls == 0) return 0;
  volatile unsigned char space[64] = {static_cast<unsigned char>(depth)};
  void*& place = kept[calls % kKept];
  let_go(place);
  place = malloc(choice.one_in(10) ? 2 * MiB : sizeof(void*) + choice.below(3000));
  if (place != nullptr) *static_cast<void**>(place) = place;
  if (choice.one_in(3)) let_go(kept[choice.below(kKept)]);
  return deeper(depth + 1) + space[0];
}

[[gnu::noinline]] void overflow() {
  overflowed = false;
  RtlCaptureContext(&before);
  if (overflowed) return;
  volatile auto* shift = static_cast<unsigned char*>(alloca(choice.below(2000) + 1));
  *shift = static_cast<unsigned char>(deeper(0));
}

// Of 64 KiB each, so that most of the calls that do not end are the allocator's; of which many ask for more memory.
DWORD WINAPI overflow_again_and_again(void*) {
  for (; rounds < kRounds; ++rounds) {
    overflow();
    if (_resetstkoflw() == 0) return 1;
    for (int block = 0; block < 1000; ++block) {
      const std::size_t size = 1 + choice.below(100 * KiB);
      auto* bytes = static_cast<unsigned char*>(malloc(size));
      if (bytes == nullptr) return 2;
      fill(bytes, size, choice.next());
      free(bytes);
    }
    for (void*& place : kept) let_go(place);
  }
  return damage ? 3 : 0;
}

SCENARIO(stack_overflows) {
  AddVectoredExceptionHandler(1, go_back);
  const HANDLE thread =
      CreateThread(nullptr, 64 * KiB, overflow_again_and_again, nullptr, STACK_SIZE_PARAM_IS_A_RESERVATION, nullptr);
  NEED(thread, "error %lu", GetLastError());
  NEED(WaitForSingleObject(thread, 60000) == WAIT_OBJECT_0, "hangs after %d overflows", rounds.load());
  DWORD code = 0;
  GetExitCodeThread(thread, &code);
  NEED(code == 0, "%lu after %d overflows", code, rounds.load());
  return 0;
}

TEST(StackOverflow, WithinTheAllocatorLeavesItUsable) { EXPECT_SCENARIO("stack_overflows"); }

}  // namespace
