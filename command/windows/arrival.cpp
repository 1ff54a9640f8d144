#include "arrival.h"

#include "common/message.h"
#include "text.h"

#include <algorithm>
#include <cwchar>
#include <psapi.h>
#include <vector>

// Of ntdll.
extern "C" __declspec(dllimport) ULONG NTAPI RtlNtStatusToDosError(LONG status);

namespace rh::command {
namespace {

constexpr DWORD kGlance = 1;  // milliseconds from one look to the next

// How a process ends when its loader, or the attaching of a library, fails. The one such code that people bring about.
bool is_failure(DWORD code) { return code >> 30 == 3 && code != DWORD{STATUS_CONTROL_C_EXIT}; }

inject::Outcome not_loaded(DWORD error) { return {inject::Entry::none, inject::Obstacle::not_loaded, error}; }

bool is_in(HANDLE process, const wchar_t* library) {
  std::vector<HMODULE> modules(1024);
  DWORD size = 0;
  if (!K32EnumProcessModules(process, modules.data(), static_cast<DWORD>(modules.size() * sizeof modules[0]), &size))
    return false;
  modules.resize(std::min<std::size_t>(modules.size(), size / sizeof modules[0]));
  return std::any_of(modules.begin(), modules.end(), [&](HMODULE module) {
    inject::Path path;
    return K32GetModuleFileNameExW(process, module, path.text, inject::kLongestPath) != 0 &&
           _wcsicmp(path.text, library) == 0;
  });
}

// Whether the thread had been suspended before it was here.
bool is_suspended(HANDLE thread) {
  const DWORD before = SuspendThread(thread);
  if (before != MAXDWORD) ResumeThread(thread);
  return before != MAXDWORD && before != 0;
}

// A library that is loaded late leaves the program's thread suspended.
inject::Outcome await_late(StartedProgram& program, const inject::Outcome& entered, const std::wstring& library,
                           DWORD patience) {
  const HANDLE thread = program.handles().hThread;
  program.resume();
  bool stopped = false;
  for (DWORD waited = 0; !stopped && !program.wait(kGlance) && waited < patience; ++waited)
    stopped = is_suspended(thread);
  if (stopped) program.note_suspended();
  inject::Path path;
  if (!inject::library_for(pe::own_machine, library.c_str(), path)) return entered;
  return program.wait(0) || is_in(program.process(), path.text) ? entered : not_loaded(0);
}

}  // namespace

Arrival::Arrival() {
  section_ = CreateFileMappingW(INVALID_HANDLE_VALUE, nullptr, PAGE_READWRITE, 0, DWORD{inject::kSectionSize}, nullptr);
  if (section_ != nullptr) view_ = MapViewOfFile(section_, FILE_MAP_READ, 0, 0, 0);
  if (view_ == nullptr) throw Failure(exit_failed, "no memory can be shared: " + error_text(GetLastError()));
}

Arrival::~Arrival() {
  UnmapViewOfFile(view_);
  CloseHandle(section_);
}

inject::Outcome Arrival::await(StartedProgram& program, const inject::Outcome& entered, const std::wstring& library,
                               DWORD patience) const {
  return entered.entry == inject::Entry::late_load ? await_late(program, entered, library, patience)
                                                   : await_import(program, entered, patience);
}

inject::Outcome Arrival::await_import(StartedProgram& program, const inject::Outcome& entered, DWORD patience) const {
  program.resume();
  std::optional<DWORD> code;
  for (DWORD waited = 0; !code && !inject::has_arrived(view_) && waited < patience; ++waited)
    code = program.wait(kGlance);
  // It may have arrived and ended since it was last looked at.
  if (!code || inject::has_arrived(view_) || !is_failure(*code)) return entered;
  return not_loaded(RtlNtStatusToDosError(static_cast<LONG>(*code)));
}

}  // namespace rh::command
