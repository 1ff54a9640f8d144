// A debugger as simple as can be:
//
//   debugger FORM LINE
//
// FORM is all: debugs what LINE starts, and what that starts; only: not what that starts; attach: comes to it after a
// while and leaves again. Says which DLLs of reheap's were loaded and what ended badly, and ends with the program's
// exit code: of the last one to end, for LINE may be a launcher.
#include <windows.h>

#include <cstdio>
#include <cwchar>
#include <map>
#include <string>

namespace {

class Debugger {
 public:
  // Until all processes have ended, or for so many milliseconds.
  void run(DWORD duration_ms = INFINITE) {
    const ULONGLONG begin = GetTickCount64();
    do {
      DEBUG_EVENT event = {};
      if (!WaitForDebugEvent(&event, duration_ms == INFINITE ? INFINITE : 10)) continue;
      const DWORD answer = see(event);
      ContinueDebugEvent(event.dwProcessId, event.dwThreadId, answer);
    } while (!(processes_.empty() && began_) && (duration_ms == INFINITE || GetTickCount64() - begin < duration_ms));
  }

  unsigned threads = 0;
  unsigned libraries = 0;  // that are called reheap.dll
  unsigned exceptions = 0;
  DWORD code = 250;  // of the last process that ended

 private:
  DWORD see(const DEBUG_EVENT& event) {
    switch (event.dwDebugEventCode) {
    case CREATE_PROCESS_DEBUG_EVENT:
      began_ = true;
      processes_[event.dwProcessId] = true;
      CloseHandle(event.u.CreateProcessInfo.hFile);
      break;
    case CREATE_THREAD_DEBUG_EVENT: ++threads; break;
    case LOAD_DLL_DEBUG_EVENT:
      libraries += is_reheap(event.u.LoadDll.hFile);
      CloseHandle(event.u.LoadDll.hFile);
      break;
    case EXIT_PROCESS_DEBUG_EVENT:
      code = event.u.ExitProcess.dwExitCode;
      processes_.erase(event.dwProcessId);
      break;
    case EXCEPTION_DEBUG_EVENT: return see_exception(event.u.Exception.ExceptionRecord);
    default: break;
    }
    return DBG_CONTINUE;
  }

  DWORD see_exception(const EXCEPTION_RECORD& record) {
    // The one at its start that tells the debugger that all DLLs are there.
    if (record.ExceptionCode == static_cast<DWORD>(EXCEPTION_BREAKPOINT)) return DBG_CONTINUE;
    std::printf("exception %lx at %p\n", record.ExceptionCode, record.ExceptionAddress);
    ++exceptions;
    return DBG_EXCEPTION_NOT_HANDLED;
  }

  static bool is_reheap(HANDLE file) {
    wchar_t path[MAX_PATH];
    const DWORD length = GetFinalPathNameByHandleW(file, path, MAX_PATH, 0);
    return length > 0 && length < MAX_PATH && std::wcsstr(path, L"reheap.dll") != nullptr;
  }

  std::map<DWORD, bool> processes_;
  bool began_ = false;
};

PROCESS_INFORMATION start(const wchar_t* line, DWORD flags) {
  std::wstring words(line);
  STARTUPINFOW info = {};
  info.cb = sizeof info;
  PROCESS_INFORMATION made = {};
  if (!CreateProcessW(nullptr, words.data(), nullptr, nullptr, TRUE, flags, nullptr, nullptr, &info, &made)) {
    std::printf("not started: error %lu\n", GetLastError());
    ExitProcess(251);
  }
  return made;
}

int debug_from_the_start(const wchar_t* line, DWORD flags) {
  Debugger debugger;
  start(line, flags);
  debugger.run();
  std::printf("%u threads, %u times reheap.dll, %u exceptions\n", debugger.threads, debugger.libraries,
              debugger.exceptions);
  return static_cast<int>(debugger.code);
}

int come_and_go(const wchar_t* line) {
  Debugger debugger;
  DWORD code = 252;
  const PROCESS_INFORMATION made = start(line, 0);
  DebugSetProcessKillOnExit(FALSE);
  for (int visit = 0; visit < 3; ++visit) {
    Sleep(150);
    if (!DebugActiveProcess(made.dwProcessId)) {
      std::printf("not attached: error %lu\n", GetLastError());
      TerminateProcess(made.hProcess, 253);
    }
    debugger.run(100);
    if (!DebugActiveProcessStop(made.dwProcessId)) std::printf("not detached: error %lu\n", GetLastError());
  }
  WaitForSingleObject(made.hProcess, INFINITE);
  GetExitCodeProcess(made.hProcess, &code);
  std::printf("%u threads, %u exceptions\n", debugger.threads, debugger.exceptions);
  return static_cast<int>(code);
}

}  // namespace

int main() {
  // The line as it stands behind the form.
  const wchar_t* const all = GetCommandLineW();
  for (const wchar_t* form : {L" all ", L" only ", L" attach "}) {
    const wchar_t* const at = std::wcsstr(all, form);
    if (!at) continue;
    const wchar_t* const line = at + std::wcslen(form);
    if (form[2] == L't') return come_and_go(line);
    return debug_from_the_start(line, form[1] == L'a' ? DEBUG_PROCESS : DEBUG_ONLY_THIS_PROCESS);
  }
  return 254;
}
