// TLS callbacks that allocate: before any initialiser of the program has run, and in each thread's first and last
// moments.
#include <gtest/gtest.h>
#include <windows.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "support/library.h"
#include "support/process.h"

using namespace contract;

namespace {

void* of_process = nullptr;
std::atomic<int> began{0}, ended{0};
DWORD slot = TLS_OUT_OF_INDEXES;

void NTAPI on_event(void*, DWORD reason, void*) {
  switch (reason) {
  case DLL_PROCESS_ATTACH:
    slot = TlsAlloc();
    of_process = calloc(1, 70000);
    break;
  case DLL_THREAD_ATTACH:
    TlsSetValue(slot, malloc(3000));
    ++began;
    break;
  case DLL_THREAD_DETACH:
    free(TlsGetValue(slot));
    free(malloc(100));
    ++ended;
    break;
  default: break;
  }
}

TEST(TlsCallbacks, AllocateBeforeMainAndAroundEveryThread) {
  ASSERT_NE(of_process, nullptr);
  const int before = began;
  for (int at = 0; at < 200; ++at) std::thread([] { free(malloc(500)); }).join();
  EXPECT_GE(began, before + 200);
  EXPECT_TRUE(eventually(5, [] { return ended >= 200; }));
  free(of_process);
}

}  // namespace

extern "C" {
extern const PIMAGE_TLS_CALLBACK test_tls_callback;
__attribute__((section(".CRT$XLD"), used)) const PIMAGE_TLS_CALLBACK test_tls_callback = on_event;
}
