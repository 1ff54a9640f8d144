// All that the replayer asks of the operating system. None of it goes through malloc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lab::sys {

// A file that is read at offsets, by many threads. Returns the bytes read, less than asked for at the end; -1 on error.
struct File {
  std::intptr_t handle = -1;
};
bool open_file(const char* path, File& file);
std::int64_t read_at(File file, void* to, std::size_t bytes, std::uint64_t offset);

// Zeroed memory of whole pages, each touched already. Ends the process when there is none.
void* map(std::size_t bytes);
void unmap(void* memory, std::size_t bytes);

unsigned cores();
std::uint64_t now_ns();
std::uint64_t cpu_ns();       // of the whole process, user and system
std::uint64_t cpu_step_ns();  // what that grows by at least
void sleep_until(std::uint64_t ns);

// Resident and committed memory of this process in bytes; 0: the system does not say.
std::uint64_t resident_bytes();
std::uint64_t commit_bytes();

// What of the resident memory no allocator has made: files, stacks, what else has a name. 0: the system does not say.
std::uint64_t named_bytes();

// The highest that resident memory has been since `reset_peak`, by the system's own mark; where that cannot be reset,
// since the process began. 0: the system does not say.
bool reset_peak();
std::uint64_t peak_resident_bytes();

// Sleeps while `word` holds `value`, at most `ns`; may return early. `wake` wakes everybody who sleeps there.
void wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint64_t ns);
void wake(std::atomic<std::uint32_t>& word);
void pause();  // inside of a spinning loop

// Aligned blocks of the allocator under test. Where the C library frees them by a function of their own, so do these.
void* allocate_aligned(std::size_t size, std::size_t alignment);
void* reallocate_aligned(void* block, std::size_t size, std::size_t alignment);
void free_aligned(void* block);

// A thread on a stack that we map, so that its memory is known to be ours. One mapping per thread, given back by join.
struct Thread {
  std::uintptr_t handle = 0;
  void* stack = nullptr;
};
inline constexpr std::size_t kStackBytes = 128 * 1024;
bool start(Thread& thread, void (*run)(void*), void* argument);
void join(Thread& thread);

}  // namespace lab::sys
