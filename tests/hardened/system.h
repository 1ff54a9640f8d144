// What the misuses need of the system.
#pragma once

#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <string>

// How a process ended.
struct End {
  bool by_itself;   // with `code`
  bool by_failure;  // the allocator or the processor ended it
  int code;         // else the system's word for it
};

#if defined(_WIN32)

#include <windows.h>

#include <process.h>

// MinGW declares none.
extern "C" size_t __cdecl _aligned_msize(void* block, size_t alignment, size_t offset);

// What has no other names here.
inline size_t malloc_usable_size(void* block) { return _msize(block); }
inline void* aligned_alloc(size_t alignment, size_t size) { return _aligned_malloc(size, alignment); }
inline void free_aligned(void* block) { _aligned_free(block); }

inline size_t size_of_aligned(void* block, size_t alignment) { return _aligned_msize(block, alignment, 0); }

inline void* map_page() { return VirtualAlloc(nullptr, 4096, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE); }

inline bool has_to_fork() { return false; }
template <typename Body> End run_forked(bool, Body) { return {}; }

// Runs this program with two words, `quietly` without what it says on stderr.
inline End run_again(const char* program, const std::string& first, const std::string& second, bool quietly) {
  SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);  // what it inherits
  STARTUPINFOA info = {};
  info.cb = sizeof(info);
  SECURITY_ATTRIBUTES inherited = {sizeof(inherited), nullptr, TRUE};
  info.dwFlags = quietly ? STARTF_USESTDHANDLES : 0;
  if (quietly) info.hStdError = CreateFileA("NUL", GENERIC_WRITE, 0, &inherited, OPEN_EXISTING, 0, nullptr);
  std::string line = std::string("\"") + program + "\" " + first + " " + second;
  PROCESS_INFORMATION made = {};
  auto start = [&] {
    return CreateProcessA(nullptr, line.data(), nullptr, nullptr, TRUE, 0, nullptr, nullptr, &info, &made) != FALSE;
  };
  // Under Wine, where processes crash in a row, one in many hundreds cannot be made at first.
  bool started = start();
  for (int more = 0; more < 10 && !started; ++more) {
    Sleep(100);
    started = start();
  }
  if (!started) {
    fprintf(stderr, "misuse: cannot start itself: %lu\n", GetLastError());
    exit(2);
  }
  constexpr DWORD kPatience = 20'000, kLate = 99;
  if (WaitForSingleObject(made.hProcess, kPatience) != WAIT_OBJECT_0) TerminateProcess(made.hProcess, kLate);
  DWORD code = 0;
  WaitForSingleObject(made.hProcess, INFINITE);
  GetExitCodeProcess(made.hProcess, &code);
  CloseHandle(made.hProcess);
  CloseHandle(made.hThread);
  if (quietly) CloseHandle(info.hStdError);
  constexpr DWORD kHeapCorruption = 0xC0000374, kFailFast = 0xC0000602;  // the latter is what Wine makes of the former
  const bool failed = code == DWORD{STATUS_ACCESS_VIOLATION} || code == kHeapCorruption || code == kFailFast;
  return {!failed, failed, static_cast<int>(code)};
}

#else

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

inline void free_aligned(void* block) { free(block); }

inline size_t size_of_aligned(void* block, size_t) { return malloc_usable_size(block); }

inline void* map_page() { return mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

// Whether a process forked from this one will do, where programs cannot start themselves: under QEMU.
inline bool has_to_fork() { return getenv("MISUSE_FORKS") != nullptr; }

// The exit code is the result of `body`.
template <typename Body> End run_forked(bool quietly, Body body) {
  fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    if (quietly && freopen("/dev/null", "w", stderr) == nullptr) _exit(99);
    alarm(20);
    const rlimit no_core = {0, 0};  // QEMU writes one itself
    setrlimit(RLIMIT_CORE, &no_core);
    _exit(body());
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    perror("misuse");
    exit(2);
  }
  if (WIFEXITED(status)) return {true, false, WEXITSTATUS(status)};
  return {false, WTERMSIG(status) != SIGALRM && WTERMSIG(status) != SIGKILL, status};
}

inline End run_again(const char* program, const std::string& first, const std::string& second, bool quietly) {
  return run_forked(quietly, [&] {
    execl("/proc/self/exe", program, first.c_str(), second.c_str(), nullptr);
    return 98;
  });
}

#endif
