#include "guard.h"

#include "line.h"

namespace {

void* landing[5];
DWORD armed_thread;  // 0: none
Then and_then;
Raised seen;

LONG WINAPI note(EXCEPTION_POINTERS* exception) {
  if (armed_thread != GetCurrentThreadId()) return EXCEPTION_CONTINUE_SEARCH;
  const EXCEPTION_RECORD& record = *exception->ExceptionRecord;
  seen = {record.ExceptionCode, (record.ExceptionFlags & EXCEPTION_NONCONTINUABLE) == 0};
  if (and_then == Then::go_on && seen.continuable) return EXCEPTION_CONTINUE_EXECUTION;
  armed_thread = 0;
  __builtin_longjmp(landing, 1);
}

LONG WINAPI tell_and_end(EXCEPTION_POINTERS* exception) {
  fail("exception %08lx at %p", exception->ExceptionRecord->ExceptionCode,
       exception->ExceptionRecord->ExceptionAddress);
  ExitProcess(3);
}

}  // namespace

[[gnu::noinline]] Raised run_guarded(GuardedCall* call, void* context, Then then) {
  seen = {};
  and_then = then;
  if (__builtin_setjmp(landing) == 0) {
    armed_thread = GetCurrentThreadId();
    call(context);
  }
  armed_thread = 0;
  return seen;
}

void install_guard() {
  AddVectoredExceptionHandler(1, note);
  SetUnhandledExceptionFilter(tell_and_end);
}
