// Accesses to memory that Windows refuses, seen before any handler of the program's.
#include "platform/platform.h"
#include "platform/windows/system.h"

namespace rh::platform {

namespace {

constinit LookAtFault* g_look = nullptr;
constinit void* g_handler = nullptr;

LONG CALLBACK handle(EXCEPTION_POINTERS* exception) {
  const EXCEPTION_RECORD& record = *exception->ExceptionRecord;
  if (record.ExceptionCode == EXCEPTION_ACCESS_VIOLATION && record.NumberParameters >= 2) {
    constexpr ULONG_PTR kRead = 0, kWrite = 1;
    ULONG_PTR kind = record.ExceptionInformation[0];
    KeepLastError keep;
    g_look(record.ExceptionInformation[1], kind == kWrite  ? Access::write
                                           : kind == kRead ? Access::read
                                                           : Access::unknown);
  }
  return EXCEPTION_CONTINUE_SEARCH;
}

}  // namespace

void on_fault(LookAtFault* look) {
  KeepLastError keep;
  g_look = look;
  g_handler = AddVectoredExceptionHandler(1, handle);
}

void forget_faults() {
  if (g_handler != nullptr) RemoveVectoredExceptionHandler(g_handler);
  g_handler = nullptr;
}

}  // namespace rh::platform
