// The whole contract with the operating system. A port is one folder beside this file that defines every function here;
// tests/src runs the layers above on platform/fake.
//
// No function allocates through malloc, changes errno or needs the loader. Unless noted otherwise all may be called
// from any thread, also before libc's own start-up and after a thread's exit handlers have run.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/compiler.h"

namespace rh::platform {

// ---- address space ----------------------------------------------------------------------------
// Addresses and sizes are multiples of page_size().

// The shortest page of any system, and the only one of most.
inline constexpr size_t kPageSize = 4096;

// Kernels of 64-bit ARM have pages of 4, 16 or 64 KiB each, and so has the fake platform.
#if defined(RH_FAKE_PLATFORM) || (defined(__aarch64__) && defined(__linux__))
inline constexpr size_t kMostPageSize = 64 * 1024;
// The running system's.
size_t page_size();
#elif defined(__APPLE__) && defined(__aarch64__)
inline constexpr size_t kMostPageSize = 16 * 1024;
constexpr size_t page_size() { return kMostPageSize; }
#else
inline constexpr size_t kMostPageSize = kPageSize;
constexpr size_t page_size() { return kPageSize; }
#endif

#if defined(_WIN32)
// Reservations start at multiples of this.
inline constexpr size_t kReserveGrain = 64 * 1024;
// Limits how far ahead memory is committed, where it is charged whether touched or not.
inline constexpr size_t kMostCommittedAhead = size_t{1} << 20;
// Whether replace_by_zeros can do what it says.
inline constexpr bool kReplacesByZeros = false;
// Whether memory counts as the process's from when it is committed; else from when it is touched.
inline constexpr bool kChargesUntouched = true;
// Under Wine each takes two memory mappings, of which Linux gives a process 65,530.
inline constexpr size_t kMostBars = 8192;
#else
inline constexpr size_t kReserveGrain = kPageSize;
inline constexpr size_t kMostCommittedAhead = size_t{32} << 20;
inline constexpr bool kReplacesByZeros = true;
inline constexpr bool kChargesUntouched = false;
inline constexpr size_t kMostBars = SIZE_MAX;
#endif

// The start and the length of a reservation are multiples of this.
inline size_t reserve_grain() { return kReserveGrain > page_size() ? kReserveGrain : page_size(); }

enum class Reserve { done, occupied, refused };

// Reserves exactly [address, address + size), inaccessible and without charge. `occupied`: something is already there,
// or the OS would not place it there; `refused`: no address space is left (limits).
Reserve reserve_at(uintptr_t address, size_t size);

// Reserves `size` bytes wherever the OS likes, aligned to `alignment`, which may be less than a page. 0 when refused.
uintptr_t reserve(size_t size, size_t alignment);

// Releases whole reservations made by either function, one or several contiguous ones.
void release(uintptr_t address, size_t size);

// The next three accept ranges that span several contiguous reservations.

// Makes reserved memory readable and writable; it reads as zero. False when the OS refuses the charge: the caller must
// then treat it as still reserved, though some of it may be readable.
bool commit(uintptr_t address, size_t size);

// Returns the physical memory of a committed range to the OS.
enum class Purged {
  zero,         // still committed, and reads as zero
  uncommitted,  // must be committed again before use
  kept,         // still committed; the content is undefined and the memory may still be held
};
Purged purge(uintptr_t address, size_t size);

// Replaces the content of a committed range by zeros without touching it. False when the OS cannot; the content is then
// undefined.
bool replace_by_zeros(uintptr_t address, size_t size);

// Makes a committed range inaccessible until unguard() makes it read as zero; its content is gone. False when the OS
// refuses: then its content may be gone. `free_only`: not at the price of a memory mapping, of which a process may have
// only so many.
enum class GuardPrice : uint8_t { free_only, any };
bool guard(uintptr_t address, size_t size, GuardPrice price);
bool unguard(uintptr_t address, size_t size);

// Makes a committed range inaccessible until unbar(), after which it holds what it did, or zeros. Both are false when
// the OS refuses. Where the OS can, it costs no memory mapping; elsewhere there are to be no more than kMostBars at a
// time. What is barred may be purged; of what is committed again after that no bar is left.
bool bar(uintptr_t address, size_t size);
bool unbar(uintptr_t address, size_t size);

// Has the OS put a committed range into its transparent huge pages, as far as the range holds whole ones; where it has
// not been touched, the first touch then makes all of a huge page resident. Whoever commits memory beside it asks for
// that too, so that all is one mapping.
void prefer_huge(uintptr_t address, size_t size);

// Whether the OS can be asked for that.
bool can_prefer_huge();

// How long such pages are.
inline size_t huge_page_size() { return page_size() / sizeof(uint64_t) * page_size(); }

// Has the OS put no huge page into a range of reserved or committed memory, nor across one of its ends. May cost a
// memory mapping at each end.
void prefer_small(uintptr_t address, size_t size);

// Moves the pages of [from, from + size) to [to, to + size); both ranges are committed and do not overlap.
enum class Moved {
  done,     // the content of `from` is undefined
  refused,  // nothing changed
  lost,     // `from` is unchanged; nothing is mapped at `to` now, and it cannot be mapped again
};
Moved move_pages(uintptr_t from, uintptr_t to, size_t size);

// Whether it is worth trying reserve_at at an address of our choice in this process.
bool places_freely();

// Whether the program was built with ThreadSanitizer, which has a malloc of its own and must see what it gives out.
bool is_under_thread_sanitizer();

// ---- limits -----------------------------------------------------------------------------------

// What the OS lets this process hold, as it stands at this moment: by control groups, or by a job. In bytes.
struct Grant {
  static constexpr uint64_t kUnlimited = UINT64_MAX;
  uint64_t hard =
      kUnlimited;  // the heap may come to so much, all else staying as it is, before the OS kills or refuses
  uint64_t soft = kUnlimited;   // the same, before the OS slows the process down
  uint64_t least = kUnlimited;  // the lowest limit there is, for all that it counts together
  bool known = true;            // else the OS could not be asked: a process may have only so many files open
};

// `held`: by the heap, as far as it knows. A few files are read, or calls made.
Grant read_grant(uint64_t held);

// The memory of the machine; 0 where nobody says.
uint64_t machine_memory();

// Whether the OS says that memory has become short, on the machine or under a limit, since it was last asked.
bool is_under_pressure();

// ---- the machine ------------------------------------------------------------------------------

// Milliseconds of a monotonic clock. Cheap; a resolution of a few ms is enough.
uint64_t now_ms();

// A number that differs from process to process.
uint64_t random_seed();

// The same, and hard to guess for who sees what the process shows.
uint64_t random_secret();

// The address of the running program's image, or 0.
uintptr_t image_address();

// Whether the code and the variables of this library may be unloaded while a thread lives that owns something
// (Ownership), which must lie elsewhere then.
bool image_may_go();

// The process's id.
uint64_t process_id();

// The memory node (NUMA) that the calling thread runs on; nodes that are alike in their last bits count as one. 0 where
// nobody says. Cheap; a moment later it may be another.
inline constexpr unsigned kMostNodes = 8;
unsigned node();

// ---- threads ----------------------------------------------------------------------------------

// Identifies a live thread: the address of something of its own, or its number. Even, never 0.
using ThreadToken = uintptr_t;
ThreadToken thread_token();

// The calling thread's number as the system's tools show it.
uint64_t thread_id();

// Whether the calling thread is the only one this process has ever had, as far as the C library knows.
bool is_single_threaded();

// Pauses longer as `attempt` grows: spins first, then yields, then sleeps.
void back_off(unsigned attempt);

// Blocks while `word` holds `expected`, at most `timeout_ms`. May return early.
void wait(const std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_ms);

// Wakes the threads that wait on `word`.
void wake(const std::atomic<uint32_t>& word);

// Runs `main` on the one helper thread, which has no thread-local variables, takes no signal and must not allocate.
// True when it runs; false when it could not be created, an earlier one is not quite gone, or `is_wanted` returns
// false. That is asked last, where no signal handler of the calling thread can come between.
bool start_helper(void (*main)(), bool (*is_wanted)());

// Ends the helper and returns when it is gone. `stop` makes its main return: the word it waits on, already nonzero.
// Must not be called by the helper itself.
void stop_helper(const std::atomic<uint32_t>& stop);

// Whether the helper was terminated from outside. Not to be called while one is being started.
bool helper_is_lost();

// Called in a forked child, where no helper runs.
void forget_helper();

// True once the process is ending in a way that has stopped every thread but the calling one, wherever it was: a lock
// that another thread holds will never be released.
bool others_are_gone();

// Called when the library is loaded: asks the OS for what a thread may not ask later, inside a sandbox.
void prepare();

#if defined(_WIN32)
inline constexpr bool kThreadsAreTerminated = true;
#else
inline constexpr bool kThreadsAreTerminated = false;
#endif

// Whether the thread with that token has been terminated from outside; it then holds its locks for ever. Asked by a
// thread that waits for it, after much patience. Never true where threads cannot end this way.
bool thread_is_gone(ThreadToken token);

// Whether the calling thread has left a call whose frame was at that address of its stack without returning from it: a
// stack that overflowed there, which the program handled. Never true where that cannot be told from a signal's handler,
// which has a stack of its own and interrupts the call.
bool has_left_call(const void* frame);

// Ownership of something by a thread, for as long as the thread lives. It is released by itself when the thread ends,
// however it ends: there is nothing to call.
class Ownership {
 public:
  // Called before first use; also in a forked child, so that the child's thread can acquire it again: the other threads
  // do not exist there.
  void reset();

  // True when no living thread owned it: the calling thread owns it now. False if it already did.
  bool try_acquire();

  // Called only by the owning thread, and only while it lives on.
  void release();

  bool is_mine() const;

  // True when no living thread owns it. May return false where only the OS knows.
  bool is_free() const;

  // Called when nobody will ask for it again: returns what the OS holds for it. False when its memory has to stay: it
  // is another thread's, which lives, and lies in a list of that thread's.
  bool drop();

 private:
  alignas(void*) unsigned char storage_[64] = {};
};

// From now on calls these three around every fork, in the forking thread: the first as late as possible before it, the
// others as early as possible after it. Unlike the rest of the contract this may allocate.
void on_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

// Says that users of the C library's streams allocate here while they hold them: the three functions are called while
// no other thread is inside the streams as a whole.
void note_streams_allocate();

// How to declare a variable of the forking thread. Where nothing forks, thread-local storage may need a C runtime;
// where it allocates, on Darwin, the system lets one thread fork at a time.
#if defined(_WIN32) || defined(__APPLE__)
#define RH_OF_FORKING_THREAD
#else
#define RH_OF_FORKING_THREAD RH_THREAD_LOCAL
#endif

// A counter that a forked child continues to share with its parent. Null when there is no memory for it.
std::atomic<uint32_t>* make_shared_counter();

// Restores reserved memory to the state it was reserved in, whatever happened to it since. False when the OS refuses.
bool renew(uintptr_t address, size_t size);

// ---- the process ------------------------------------------------------------------------------

// The value of an environment variable, or NULL. Valid until the next call where the environment is not set up yet.
// Always NULL in a process with more privileges than whoever started it, for the environment comes from there.
const char* environment(const char* name);

// Calls `visit` with each "NAME=value" of the environment, long values truncated; with none where environment() gives
// none. Unlike the rest of the contract this may allocate, and the environment has to be set up.
void each_variable(void (*visit)(const char* entry));

void write_error(const char* text, size_t length);

// Replaces the file's content, or adds to it. is_open is false when the file cannot be opened.
class FileWriter {
 public:
  enum class How : uint8_t { replace, append };
  explicit FileWriter(const char* path, How how = How::replace);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  bool is_open() const { return handle_ != -1; }

  // Whether all that was to be written so far was: a disk may be full. When something was not, what follows is not
  // either.
  bool is_whole() const { return refusal_ == nullptr; }
  void write(const char* text, size_t length);

  // Why it is not open, or not whole: "cannot be written: ...".
  const char* refusal() const { return refusal_; }

 private:
  intptr_t handle_ = -1;
  const char* refusal_ = nullptr;
};

// From now on calls `look` when a thread accesses memory and the OS refuses, in that thread; then whoever handled it
// before has it, who else ends the process. To be called once, when the library is loaded or later. May allocate.
enum class Access : uint8_t { unknown, read, write };
using LookAtFault = void(uintptr_t address, Access access);
void on_fault(LookAtFault* look);

// No more: the library is about to be unloaded.
void forget_faults();

// Whether others may use a signal of that number to ask for something: never where there are no signals.
bool may_listen(uint64_t number);

// From now on `function` is called, in the handler, when that signal arrives, until the program gives it another
// meaning. False when it already has. Changes errno; to be called once, when the library is loaded or later.
bool listen(uint64_t number, void (*function)());

// No more: the library is about to be unloaded.
void stop_listening();

[[noreturn]] void abort_process();

// Ends the process at once; none of its own code runs any more.
[[noreturn]] void end_process(int code);

// ---- stacks -----------------------------------------------------------------------------------

inline constexpr unsigned kMostFrames = 128;

// Writes where the functions that led here return to, the innermost first, to `frames`, which has room for `most`; at
// most kMostFrames are found. Says how many: 0 where nobody can tell. Where the library is a file of its own, its own
// functions are left out. Takes no lock of the loader's, and reads any stack and any table without faulting; what was
// unloaded a second ago may still be taken for what it was. May be called in a signal handler.
unsigned stack(uintptr_t* frames, unsigned most);

// The file that is mapped at an address, without its folder, and where the address lies in it as it is mapped: what
// symbols are looked up by. False where nobody can tell. Takes no lock of the loader's; by one thread at a time.
struct CodePlace {
  static constexpr size_t kMostName = 128;
  char file[kMostName];
  uintptr_t offset;
};
bool find_code(uintptr_t address, CodePlace* place);

// A part of memory that holds code. Its texts last until the next one.
struct Module {
  uintptr_t start, end;
  uint64_t file_offset;  // of `start`
  const char* path;      // of its file, in UTF-8 if the system has it so; empty: of none
  size_t path_length;
  const unsigned char* build_id;
  size_t build_id_length;  // 0: it has none
};

// Calls `visit` with each module of the process, where stacks are found; with none where there is no memory for that.
void each_module(void (*visit)(const Module& module, void* context), void* context);

// ---- tools that watch from outside -------------------------------------------------------------

// What the calling thread has done, for whoever watches the process: USDT on Linux, ETW on Windows. Where nobody does,
// each is a call and hardly more. No lock is to be held that others wait for: who watches may take long.

// A block of `size` bytes was made, one that stands for `stands_for` bytes; and one of those is about to be freed.
void probe_allocated(const void* block, uint64_t size, uint64_t stands_for);
void probe_freed(const void* block);

// Memory was misused; `block` 0: none is known.
void probe_misuse(const char* message, uintptr_t block);

// ---- calls to the OS --------------------------------------------------------------------------

enum class OsCall { reserve, release, commit, purge, move, guard, thread, wait, wake, count };

const char* os_call_name(OsCall kind);
size_t os_calls(OsCall kind);
void count_os_call(OsCall kind);

}  // namespace rh::platform
