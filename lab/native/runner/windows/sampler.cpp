#include "sampler.h"

#include <tlhelp32.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "figures.h"
#include "handle.h"
#include "wine.h"

namespace runner {
namespace {

constexpr unsigned kReadAgain = 16;  // new code may be a library that came later, or made at run time
constexpr DWORD kThreadRights = THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT | THREAD_QUERY_INFORMATION;

std::uint64_t ticks(FILETIME time) { return std::uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime; }

// In units that only compare. Processor cycles tell of the shortest run; Wine counts none, and has times to 10 ms.
std::optional<std::uint64_t> time_of(HANDLE thread) {
  ULONG64 cycles = 0;
  if (QueryThreadCycleTime(thread, &cycles) && cycles != 0) return cycles;
  FILETIME created, ended, system, user;
  if (!GetThreadTimes(thread, &created, &ended, &system, &user)) return std::nullopt;
  return ticks(system) + ticks(user);
}

// The address at which the thread stands. It runs again when this returns.
std::optional<std::uintptr_t> address_of(HANDLE thread) {
  if (SuspendThread(thread) == static_cast<DWORD>(-1)) return std::nullopt;
  CONTEXT context = {};
  context.ContextFlags = CONTEXT_CONTROL;
  const bool known = GetThreadContext(thread, &context);
  ResumeThread(thread);
  if (!known) return std::nullopt;
#if defined(_M_ARM64)
  return context.Pc;
#elif defined(_M_X64)
  return context.Rip;
#else
  return context.Eip;
#endif
}

// A thread in the kernel stands behind the instruction that called it: syscall, or what Wine has in its place.
bool is_in_kernel(HANDLE process, std::uintptr_t address) {
  constexpr unsigned char kSystemCall[] = {0x0F, 0x05};
  unsigned char before[sizeof kWinesCall];
  if (!ReadProcessMemory(process, reinterpret_cast<void*>(address - sizeof before), before, sizeof before, nullptr))
    return false;
  const unsigned char* last = before + sizeof before - sizeof kSystemCall;
  return std::memcmp(last, kSystemCall, sizeof kSystemCall) == 0 ||
         std::memcmp(before, kWinesCall, sizeof kWinesCall) == 0;
}

}  // namespace

void Sampler::sample() {
  const std::vector<DWORD> ours = processes_of(job_);
  const Handle all(CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0));
  THREADENTRY32 thread;
  thread.dwSize = sizeof thread;
  for (BOOL more = Thread32First(all.get(), &thread); more; more = Thread32Next(all.get(), &thread))
    if (std::find(ours.begin(), ours.end(), thread.th32OwnerProcessID) != ours.end())
      sample(thread.th32OwnerProcessID, thread.th32ThreadID);
}

void Sampler::sample(DWORD process_id, DWORD thread_id) {
  const Handle thread(OpenThread(kThreadRights, FALSE, thread_id));
  Process& process = process_of(process_id);
  if (!thread || process.handle == nullptr) {
    ++lost_;
    return;
  }
  if (!has_run(thread_id, thread.get())) return;
  if (const auto address = address_of(thread.get()))
    ++samples_[place(process, *address)];
  else
    ++lost_;
}

Sampler::Process& Sampler::process_of(DWORD id) {
  Process& process = processes_[id];
  // The handle stays open, so that the number is not given to another process.
  if (process.handle == nullptr) process.handle = OpenProcess(PROCESS_QUERY_INFORMATION | PROCESS_VM_READ, FALSE, id);
  return process;
}

bool Sampler::has_run(DWORD id, HANDLE thread) {
  const auto now = time_of(thread);
  if (!now) return false;
  std::uint64_t& before = time_used_[id];
  const bool ran = *now != before;
  before = *now;
  return ran;
}

std::string Sampler::place(Process& process, std::uintptr_t address) {
  if (is_in_kernel(process.handle, address)) return kKernel;
  const LoadedModule* module = find(process, address);
  if (module == nullptr && process.misses++ % kReadAgain == 0) {
    process.modules = modules_of(process.handle);
    module = find(process, address);
  }
  return module == nullptr ? "[elsewhere]" : module->path;
}

const LoadedModule* Sampler::find(const Process& process, std::uintptr_t address) const {
  for (const LoadedModule& module : process.modules)
    if (address >= module.begin && address < module.end) return &module;
  return nullptr;
}

}  // namespace runner
