#include "inject.h"

#include "kind.h"
#include "library.h"
#include "policies.h"

// Of ntdll.
extern "C" __declspec(dllimport) LONG NTAPI NtSetInformationProcess(HANDLE process, ULONG what, void* from,
                                                                    ULONG length);

namespace rh::inject {
namespace {

Outcome failed(Obstacle obstacle) { return {Entry::none, obstacle, GetLastError()}; }

// A path as import names may have it on every system: they are read by the code page of whoever reads them.
bool ascii_path(const wchar_t* path, char* text, size_t room) {
  for (size_t at = 0; at < room; ++at) {
    if (path[at] > 0x7e) return false;
    text[at] = static_cast<char>(path[at]);
    if (path[at] == 0) return true;
  }
  return false;
}

bool import_name(const wchar_t* path, char* text, size_t room) {
  if (ascii_path(path, text, room)) return true;
  Path shorter;
  const DWORD length = GetShortPathNameW(path, shorter.text, kLongestPath);
  return length != 0 && length < kLongestPath && ascii_path(shorter.text, text, room);
}

Obstacle judge(HANDLE process, const pe::Image& image) {
  if (is_managed(image)) return Obstacle::managed;
  if (is_go(image) && !imports_allocation(image)) return Obstacle::go;
  return is_cygwin(image) ? Obstacle::cygwin : forbids_any(process);
}

// A loader that fails would ask the user to confirm it, in a window, and whoever waits would wait for that. Wine sets
// the caller's own mode, whatever the process.
void show_no_errors(HANDLE process) {
  constexpr ULONG default_hard_error_mode = 12;
  // The system's bit for the loader's windows is the other way round.
  ULONG mode = SEM_NOGPFAULTERRORBOX;
  const UINT own = GetErrorMode();
  NtSetInformationProcess(process, default_hard_error_mode, &mode, sizeof mode);
  if (GetErrorMode() != own) SetErrorMode(own);
}

Obstacle import_library(const pe::Image& image, const wchar_t* library, const Settings& settings, HANDLE section) {
  char name[kLongestPath];
  if (!import_name(library, name, sizeof name)) return Obstacle::path_not_ascii;
  const Obstacle obstacle = add_import(image, name, settings, section);
  if (obstacle == Obstacle::none && (settings.awaited != 0 || settings.rehearses != 0)) show_no_errors(image.process);
  return obstacle;
}

bool is_wow64(HANDLE process) {
  BOOL answer = FALSE;
  return IsWow64Process(process, &answer) && answer;
}

bool queue(HANDLE thread, const char* function, ULONG_PTR argument) {
  const auto code =
      reinterpret_cast<PAPCFUNC>(reinterpret_cast<void*>(GetProcAddress(GetModuleHandleW(L"kernel32.dll"), function)));
  return QueueUserAPC(code, thread, argument) != 0;
}

// Where import tables cannot be led elsewhere, but code can still run before the program's first instruction: kernel32
// lies at one address in all processes of an architecture. Not in a 32-bit process on a 64-bit system: a call queued
// before its 32-bit side is there was seen to crash it.
bool load_later(const PROCESS_INFORMATION& suspended, const wchar_t* library, bool stop) {
  size_t length = 0;
  while (library[length] != 0) ++length;
  const size_t bytes = (length + 1) * sizeof *library;
  void* const name = VirtualAllocEx(suspended.hProcess, nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (name == nullptr) return false;
  return WriteProcessMemory(suspended.hProcess, name, library, bytes, nullptr) &&
         queue(suspended.hThread, "LoadLibraryW", reinterpret_cast<ULONG_PTR>(name)) &&
         (!stop || queue(suspended.hThread, "SuspendThread", reinterpret_cast<ULONG_PTR>(GetCurrentThread())));
}

Outcome enter_image(const PROCESS_INFORMATION& suspended, const pe::Image& image, const wchar_t* library,
                    const Settings& settings, HANDLE section) {
  const Obstacle obstacle = import_library(image, library, settings, section);
  if (obstacle == Obstacle::none) return {Entry::first_import, obstacle, 0};
  const Outcome outcome = failed(obstacle);
  if (image.machine != pe::own_machine || is_wow64(suspended.hProcess) || settings.rehearses != 0 ||
      !load_later(suspended, library, section != nullptr))
    return outcome;
  return {Entry::late_load, obstacle, 0};
}

void append_number(Path& line, DWORD number) {
  wchar_t text[12] = {};
  size_t at = sizeof text / sizeof *text - 1;
  do {
    text[--at] = static_cast<wchar_t>(L'0' + number % 10);
    number /= 10;
  } while (number != 0);
  line.append(L" ");
  line.append(text + at);
}

Outcome wait_for_helper(const PROCESS_INFORMATION& helper) {
  DWORD answer = 0;
  WaitForSingleObject(helper.hProcess, INFINITE);
  const bool told = GetExitCodeProcess(helper.hProcess, &answer);
  CloseHandle(helper.hThread);
  CloseHandle(helper.hProcess);
  return told ? unpack(answer) : failed(Obstacle::helper_failed);
}

Outcome enter_by_helper(const PROCESS_INFORMATION& suspended, const Means& means, const Settings& settings) {
  Path launcher, line;
  if (!find_part(means.library, pe::FileKind::program, IMAGE_FILE_MACHINE_AMD64, launcher) &&
      !find_part(means.library, pe::FileKind::program, pe::machine_arm64, launcher))
    return failed(Obstacle::no_launcher);
  line.set(L"reheap enter");
  append_number(line, suspended.dwProcessId);
  append_number(line, suspended.dwThreadId);
  append_number(line, settings.follow_children);
  append_number(line, static_cast<DWORD>(settings.when_left));
  append_number(line, settings.rehearses);
  append_number(line, settings.error_mode);
  append_number(line, GetCurrentProcessId());
  append_number(line, static_cast<DWORD>(reinterpret_cast<uintptr_t>(means.section)));
  append_number(line, is_hardened(means.library) ? 1 : 0);
  PROCESS_INFORMATION helper;
  if (!means.start_helper(launcher.text, line.text, &helper)) return failed(Obstacle::helper_failed);
  return wait_for_helper(helper);
}

}  // namespace

// From a 32-bit process a 64-bit one cannot be written to: the 64-bit launcher does it.
bool out_of_reach(HANDLE process) { return sizeof(void*) == 4 && is_wow64(GetCurrentProcess()) && !is_wow64(process); }

bool library_for(WORD machine, const wchar_t* library, Path& found) {
  if (machine == 0) return false;
  if (file_machine(library, pe::FileKind::library) == machine) return found.set(library);
  return find_part(library, pe::FileKind::library, machine, found);
}

Outcome enter(const PROCESS_INFORMATION& suspended, const Means& means, const Settings& settings) {
  if (out_of_reach(suspended.hProcess)) return enter_by_helper(suspended, means, settings);
  pe::Image image;
  if (!main_image(suspended.hProcess, image)) return failed(Obstacle::unreadable);
  take_import_back(image);
  if (const Obstacle found = judge(suspended.hProcess, image); found != Obstacle::none) return {Entry::none, found, 0};
  Path library;
  if (!library_for(image.machine, means.library, library)) return {Entry::none, Obstacle::no_library, 0};
  LibraryFile file = {.whole = true, .answers = true, .guarded = false, .for_shadow_stacks = false};
  if (!means.shown) {
    file = look_at_library(library.text);
    // One that does not know of rehearsals would run the program.
    if (!file.whole || (settings.rehearses != 0 && !file.answers)) return {Entry::none, Obstacle::damaged, 0};
    if (const Obstacle found = forbids(suspended.hProcess, file, library.text); found != Obstacle::none)
      return {Entry::none, found, 0};
  }
  Settings passed = settings;
  passed.awaited = means.section != nullptr && file.answers ? 1 : 0;
  return enter_image(suspended, image, library.text, passed, means.section);
}

}  // namespace rh::inject
