#include "children.h"

#include "../inject.h"
#include "../redirect/system_function.h"

namespace rh::children {
namespace {

// What every form of CreateProcess ends in, but those that another process carries out (…WithLogon, …WithToken).
using CreateProcessInternal = BOOL(WINAPI*)(HANDLE token, const wchar_t* program,
                                            wchar_t* command_line, SECURITY_ATTRIBUTES* of_process,
                                            SECURITY_ATTRIBUTES* of_thread, BOOL inherit,
                                            DWORD flags, void* environment, const wchar_t* folder,
                                            STARTUPINFOW* startup, PROCESS_INFORMATION* made,
                                            HANDLE* restricted_token);

constinit const void* g_original = nullptr;
constinit inject::Settings g_settings = {};
constinit inject::Path g_library = {};

CreateProcessInternal original() {
  return reinterpret_cast<CreateProcessInternal>(reinterpret_cast<uintptr_t>(g_original));
}

bool start_helper(const wchar_t* program, wchar_t* command_line, PROCESS_INFORMATION* made) {
  STARTUPINFOW startup;
  SecureZeroMemory(&startup, sizeof startup);
  startup.cb = sizeof startup;
  return original()(nullptr, program, command_line, nullptr, nullptr, FALSE, CREATE_NO_WINDOW,
                    nullptr, nullptr, &startup, made, nullptr);
}

void enter(const PROCESS_INFORMATION& made) {
  // Whether it worked is not this program's affair, and may not show in its last error.
  const DWORD error = GetLastError();
  inject::enter({made.hProcess, made.hThread, made.dwProcessId, made.dwThreadId},
                {g_library.text, start_helper}, g_settings);
  SetLastError(error);
}

BOOL WINAPI create_process(HANDLE token, const wchar_t* program, wchar_t* command_line,
                           SECURITY_ATTRIBUTES* of_process, SECURITY_ATTRIBUTES* of_thread,
                           BOOL inherit, DWORD flags, void* environment, const wchar_t* folder,
                           STARTUPINFOW* startup, PROCESS_INFORMATION* made,
                           HANDLE* restricted_token) {
  const BOOL done =
      original()(token, program, command_line, of_process, of_thread, inherit,
                 flags | CREATE_SUSPENDED, environment, folder, startup, made, restricted_token);
  if (!done || made == nullptr || made->hThread == nullptr) return done;
  enter(*made);
  if ((flags & CREATE_SUSPENDED) == 0) ResumeThread(made->hThread);
  return done;
}

}  // namespace

const char* begin(HMODULE library, const inject::Settings& settings) {
  if (settings.follow_children == 0) return nullptr;
  g_settings = settings;
  g_settings.when_left = inject::WhenLeft::nothing;
  if (!inject::module_path(library, g_library)) return "the library's path is too long";
  const auto* replacement = reinterpret_cast<const void*>(create_process);
  return redirect::replace_system_function("CreateProcessInternalW", replacement, &g_original);
}

}  // namespace rh::children
