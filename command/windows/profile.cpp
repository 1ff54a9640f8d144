#include "profile.h"

#include "common/frame.h"
#include "common/message.h"
#include "redirect/process/profile.h"
#include "text.h"

#include <algorithm>
#include <memory>
#include <psapi.h>
#include <vector>

namespace rh::command {
namespace {

using redirect::ProfileAnswer;
using redirect::ProfileRequest;

struct Close {
  void operator()(HANDLE handle) const { CloseHandle(handle); }
};
using Handle = std::unique_ptr<void, Close>;

struct Unload {
  void operator()(HMODULE module) const { FreeLibrary(module); }
};

[[noreturn]] void fail(const std::string& what) { throw Failure(exit_failed, what); }

// A number that no process has is an invalid parameter to Windows.
std::string why_not_opened(DWORD error) {
  return error == ERROR_INVALID_PARAMETER ? "there is no such process" : error_text(error);
}

// A process that runs on the library, and where in it a thread begins that is to serve a request.
class Profiled {
 public:
  explicit Profiled(DWORD id) : name_("process " + std::to_string(id)), process_(OpenProcess(kRights, FALSE, id)) {
    if (process_ == nullptr) fail(name_ + ": " + why_not_opened(GetLastError()));
    if (is_emulated(process_.get()) != is_emulated(GetCurrentProcess()))
      fail(name_ + " is of another architecture: use the reheap.exe of that one");
    entry_ = find_entry();
    if (entry_ == nullptr) fail(name_ + " does not run on this reheap.dll: start it by reheap run");
  }

  ProfileAnswer ask(const ProfileRequest& request) const {
    void* there = VirtualAllocEx(process_.get(), nullptr, sizeof request, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    if (there == nullptr || !WriteProcessMemory(process_.get(), there, &request, sizeof request, nullptr))
      fail(name_ + ": " + error_text(GetLastError()));
    const ProfileAnswer answer = serve(there);
    VirtualFreeEx(process_.get(), there, 0, MEM_RELEASE);
    return answer;
  }

  // False when it ends before.
  bool runs_for(DWORD milliseconds) const { return WaitForSingleObject(process_.get(), milliseconds) == WAIT_TIMEOUT; }

  const std::string& name() const { return name_; }

 private:
  static constexpr DWORD kRights = PROCESS_CREATE_THREAD | PROCESS_QUERY_INFORMATION | PROCESS_VM_OPERATION |
                                   PROCESS_VM_READ | PROCESS_VM_WRITE | SYNCHRONIZE;

  static constexpr DWORD kPatience = 60'000;  // a thread begins when the loader is at rest; a long profile is written

  static bool is_emulated(HANDLE process) {
    BOOL is = FALSE;
    return IsWow64Process(process, &is) && is;
  }

  ProfileAnswer serve(void* request) const {
    const Handle thread(CreateRemoteThread(process_.get(), nullptr, 0, entry_, request, 0, nullptr));
    if (thread == nullptr) fail(name_ + ": " + error_text(GetLastError()));
    const HANDLE either[] = {thread.get(), process_.get()};
    if (WaitForMultipleObjects(2, either, FALSE, kPatience) == WAIT_TIMEOUT)
      fail(name_ + " does not answer: it hangs where it loads or leaves a DLL");
    DWORD code = 0;
    GetExitCodeThread(thread.get(), &code);
    return static_cast<ProfileAnswer>(code);
  }

  LPTHREAD_START_ROUTINE find_entry() const {
    std::vector<HMODULE> modules(4096);
    DWORD size = 0;
    if (!K32EnumProcessModules(process_.get(), modules.data(), static_cast<DWORD>(modules.size() * sizeof modules[0]),
                               &size))
      return nullptr;
    modules.resize(std::min<std::size_t>(modules.size(), size / sizeof modules[0]));
    for (HMODULE module : modules)
      if (auto entry = entry_in(module)) return entry;
    return nullptr;
  }

  // The library may have any name; of the system it is none.
  LPTHREAD_START_ROUTINE entry_in(HMODULE module) const {
    inject::Path file;
    wchar_t system[MAX_PATH] = {};
    const UINT length = GetWindowsDirectoryW(system, MAX_PATH);
    if (K32GetModuleFileNameExW(process_.get(), module, file.text, inject::kLongestPath) == 0) return nullptr;
    if (_wcsnicmp(file.text, system, length) == 0) return nullptr;
    // Nothing of it is run here.
    const std::unique_ptr<std::remove_pointer_t<HMODULE>, Unload> here(
        LoadLibraryExW(file.text, nullptr, DONT_RESOLVE_DLL_REFERENCES));
    if (here == nullptr) return nullptr;
    const auto entry = reinterpret_cast<const char*>(GetProcAddress(here.get(), redirect::profile_entry));
    if (entry == nullptr) return nullptr;
    const auto offset = entry - reinterpret_cast<const char*>(here.get());
    return reinterpret_cast<LPTHREAD_START_ROUTINE>(reinterpret_cast<char*>(module) + offset);
  }

  std::string name_;
  Handle process_;
  LPTHREAD_START_ROUTINE entry_ = nullptr;
};

// Where the process, in another folder, is to write.
ProfileRequest to_write(const ProfileOptions& options) {
  const std::string given =
      options.file.empty() ? "profile." + std::to_string(options.process) + ".pb.gz" : options.file;
  const std::string path = narrow(full_path(wide(given)));
  ProfileRequest request = {};
  if (path.empty() || path.size() >= sizeof request.path) throw Failure(exit_usage, "too long a path: " + given);
  path.copy(request.path, path.size());
  return request;
}

}  // namespace

int profile(const ProfileOptions& options) {
  const ProfileRequest writes = to_write(options);
  const Profiled process(options.process);
  if (process.ask({.every = options.rate, .path = {}}) != ProfileAnswer::done)
    fail(process.name() + " makes no profiles: it is the hardened build, or ends");
  if (!process.runs_for(static_cast<DWORD>(options.seconds * 1000)))
    fail(process.name() + " has ended before its profile was written; REHEAP_PROFILE has one written at the end");
  if (process.ask(writes) != ProfileAnswer::done)
    fail(process.name() + " could not write " + writes.path + "; what it says on its stderr tells why");
  say("wrote " + std::string(writes.path));
  return exit_reached;
}

}  // namespace rh::command
