#include "children.h"

#include "inject.h"
#include "proof.h"
#include "redirect/patcher/system_function.h"

namespace rh::inject {
namespace {

// What every form of CreateProcess ends in, but those that another process carries out (…WithLogon, …WithToken).
using CreateProcessInternal = BOOL(WINAPI*)(HANDLE token, const wchar_t* program, wchar_t* command_line,
                                            SECURITY_ATTRIBUTES* of_process, SECURITY_ATTRIBUTES* of_thread,
                                            BOOL inherit, DWORD flags, void* environment, const wchar_t* folder,
                                            STARTUPINFOW* startup, PROCESS_INFORMATION* made, HANDLE* restricted_token);

constinit const void* g_original = nullptr;
constinit Settings g_settings = {};
constinit Path g_library = {};

CreateProcessInternal original() {
  return reinterpret_cast<CreateProcessInternal>(reinterpret_cast<uintptr_t>(g_original));
}

bool start_helper(const wchar_t* program, wchar_t* command_line, PROCESS_INFORMATION* made) {
  STARTUPINFOW startup;
  SecureZeroMemory(&startup, sizeof startup);
  startup.cb = sizeof startup;
  return original()(nullptr, program, command_line, nullptr, nullptr, FALSE, CREATE_NO_WINDOW, nullptr, nullptr,
                    &startup, made, nullptr);
}

Outcome enter_child(const PROCESS_INFORMATION& made, const Settings& settings, bool shown) {
  return enter(made, {g_library.text, start_helper, nullptr, shown}, settings);
}

// Loading may wait for a slow disk.
constexpr DWORD kPatience = 60'000;

// The process is ended in any case: before its program's first instruction, for the library does not go on.
bool rehearse(const PROCESS_INFORMATION& twin) {
  Settings settings = g_settings;
  settings.rehearses = 1;
  DWORD code = 0;
  if (enter_child(twin, settings, false).entered()) {
    ResumeThread(twin.hThread);
    WaitForSingleObject(twin.hProcess, kPatience);
    GetExitCodeProcess(twin.hProcess, &code);
  }
  TerminateProcess(twin.hProcess, 0);
  CloseHandle(twin.hThread);
  CloseHandle(twin.hProcess);
  return code == kRehearsed;
}

// A twin of the process is not seen, and is no debugger's.
DWORD twin_flags(DWORD flags) {
  constexpr DWORD debugged = DEBUG_PROCESS | DEBUG_ONLY_THIS_PROCESS, window = CREATE_NEW_CONSOLE;
  if ((flags & window) != 0) flags = (flags & ~window) | CREATE_NO_WINDOW;
  return (flags & ~debugged) | CREATE_SUSPENDED;
}

BOOL WINAPI create_process(HANDLE token, const wchar_t* program, wchar_t* command_line, SECURITY_ATTRIBUTES* of_process,
                           SECURITY_ATTRIBUTES* of_thread, BOOL inherit, DWORD flags, void* environment,
                           const wchar_t* folder, STARTUPINFOW* startup, PROCESS_INFORMATION* made,
                           HANDLE* restricted_token) {
  const BOOL done = original()(token, program, command_line, of_process, of_thread, inherit, flags | CREATE_SUSPENDED,
                               environment, folder, startup, made, restricted_token);
  if (!done || made == nullptr || made->hThread == nullptr) return done;
  // Whether it can be reached is not this program's affair, and may not show in its last error.
  const DWORD error = GetLastError();
  const Kind kind = kind_of(made->hProcess, g_library.text);
  PROCESS_INFORMATION twin;
  bool loads = is_shown(kind);
  // A library that its loader does not take would end the process: first another one has to show that it does.
  if (!loads && kind.machine != 0 &&
      original()(token, program, command_line, of_process, of_thread, inherit, twin_flags(flags), environment, folder,
                 startup, &twin, nullptr)) {
    loads = rehearse(twin);
    if (loads) show(kind);
  }
  if (loads) enter_child(*made, g_settings, true);
  SetLastError(error);
  if ((flags & CREATE_SUSPENDED) == 0) ResumeThread(made->hThread);
  return done;
}

}  // namespace

const char* follow_children(HMODULE library, const Settings& settings) {
  if (settings.follow_children == 0) return nullptr;
  g_settings = settings;
  g_settings.when_left = WhenLeft::nothing;
  if (!module_path(library, g_library)) return "the library's path is too long";
  show(kind_of(GetCurrentProcess(), g_library.text));
  const auto* replacement = reinterpret_cast<const void*>(create_process);
  return redirect::replace_system_function("CreateProcessInternalW", replacement, &g_original);
}

}  // namespace rh::inject
