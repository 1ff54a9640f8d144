// The whole contract with the operating system. A port is one folder beside this file that defines
// every function here; tests/src runs the layers above on platform/fake.
//
// No function allocates through malloc, changes errno, or needs the loader. All may be called from any
// thread, also before libc's own start-up and after a thread's exit handlers ran, unless said otherwise.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rh::platform {

// ---- address space ----------------------------------------------------------------------------
// Addresses and sizes are multiples of kPageSize.

inline constexpr size_t kPageSize = 4096;

#if defined(_WIN32)
// Reservations begin at multiples of this.
inline constexpr size_t kReserveGrain = 64 * 1024;
// Where committed memory is charged whether it is touched or not, little is committed ahead.
inline constexpr size_t kMostCommittedAhead = size_t{1} << 20;
#else
inline constexpr size_t kReserveGrain = kPageSize;
inline constexpr size_t kMostCommittedAhead = size_t{32} << 20;
#endif

enum class Reserve { done, occupied, refused };

// Reserves exactly [address, address + size), inaccessible and without charge. `occupied`: something is
// there already, or the OS would not place it there; `refused`: no address space is left (limits).
Reserve reserve_at(uintptr_t address, size_t size);

// Reserves `size` bytes wherever the OS likes, aligned to `alignment`. 0 when refused.
uintptr_t reserve(size_t size, size_t alignment);

// Gives back whole reservations made by either function, one or several that follow each other.
void release(uintptr_t address, size_t size);

// The three below take ranges that span several reservations, if these follow each other.

// Makes reserved memory readable and writable; it reads as zero. False when the OS refuses the charge: then it is to be
// taken as reserved still, though some of it may be readable.
bool commit(uintptr_t address, size_t size);

// Gives the physical memory of a committed range back.
enum class Purged {
  zero,         // still committed, and reads as zero
  uncommitted,  // to be committed again before use
  kept,         // still committed; the content is undefined and the memory may still be held
};
Purged purge(uintptr_t address, size_t size);

// Replaces the content of a committed range by zeros without touching it. False when the OS cannot: the content is
// undefined then.
bool replace_by_zeros(uintptr_t address, size_t size);

// Moves the pages of [from, from + size) to [to, to + size), both committed and apart from each other.
enum class Moved {
  done,     // what `from` holds then is undefined
  refused,  // nothing changed
  lost,     // `from` is as it was; where `to` was there is nothing now, and it can not be had again
};
Moved move_pages(uintptr_t from, uintptr_t to, size_t size);

// Whether reserve_at at an address of one's choosing is worth trying in this process.
bool places_freely();

// ---- the machine ------------------------------------------------------------------------------

// Milliseconds of a clock that never goes back. Cheap: a few ms of grain are fine.
uint64_t now_ms();

// A number that differs from process to process.
uint64_t random_seed();

// The address of the running program's image, or 0.
uintptr_t image_address();

// The process's id.
uint64_t process_id();

// ---- threads ----------------------------------------------------------------------------------

// What tells threads alive apart: the address of something that each has of its own, or its number. Even, never 0.
using ThreadToken = uintptr_t;
ThreadToken thread_token();

// Whether the calling thread is the only one there ever was in this process, as far as the C library tells.
bool is_single_threaded();

// Pauses for roughly `attempt` units of patience: spins first, then yields, then sleeps.
void back_off(unsigned attempt);

// Blocks while `word` holds `expected`, at most `timeout_ms`. May return early.
void wait(const std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_ms);

// Wakes what waits on `word`.
void wake(const std::atomic<uint32_t>& word);

// Runs `main` on the one helper thread: it has no thread-local variables, takes no signal and
// must not allocate. True when it runs; false when it could not be made, an earlier one is not quite gone, or it is not
// wanted: this is asked last, where no signal handler of the calling thread can come between.
bool start_helper(void (*main)(), bool (*is_wanted)());

// Ends the helper and comes back when it is gone. `stop` is what makes its main return: a word it waits on, not 0 by now.
// Not for the helper itself.
void stop_helper(const std::atomic<uint32_t>& stop);

// Whether somebody terminated it. Not while one is being started.
bool helper_is_lost();

// To be called in a forked child: no helper runs here.
void forget_helper();

// True once the process is ending in a way that has stopped every thread but the calling one, wherever it was: a lock
// that one of them holds will never be released.
bool others_are_gone();

// To be called when the library is loaded: asks the OS what a thread may not ask later, in a sandbox closed by then.
void prepare();

#if defined(_WIN32)
inline constexpr bool kThreadsAreTerminated = true;
#else
inline constexpr bool kThreadsAreTerminated = false;
#endif

// Whether the thread of that token is no more: terminated from outside, what it held it holds for ever. To be asked after
// much patience, by one who waits for it. Never true where no thread ends so.
bool thread_is_gone(ThreadToken token);

// Ownership of something by a thread, for as long as the thread lives. It passes on by itself when the thread
// ends, however it ends: there is nothing to call.
class Ownership {
 public:
  // Before first use; also in a forked child, for its own thread to acquire it again: the others are not there.
  void reset();

  // True when nobody alive owned it: the calling thread owns it now. False for what it owns already.
  bool try_acquire();

  // Only the thread that owns it, and only while it lives on.
  void release();

  bool is_mine() const;

  // True when nobody alive owns it. May say false where the OS alone knows.
  bool is_free() const;

  // Nobody asks for it again: what the OS holds for it goes back.
  void drop();

 private:
  alignas(void*) unsigned char storage_[64] = {};
};

// Has the three called around every fork from now on, in the forking thread: the first as late as can be before, the
// others as early as can be after. Unlike the rest of the contract this may allocate.
void on_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

// The users of the C library's streams allocate here, while they hold them: the three are called while no other thread is
// inside the streams as a whole.
void note_streams_allocate();

// What a variable of the forking thread is declared as. Where nothing forks, thread-local storage may want a C runtime.
#if defined(_WIN32)
#define RH_OF_FORKING_THREAD
#else
#define RH_OF_FORKING_THREAD thread_local
#endif

// A counter that a forked child goes on sharing with its parent. Null when there is no memory for it.
std::atomic<uint32_t>* make_shared_counter();

// Makes reserved memory as it was when it was reserved, whatever became of it since. False when the OS refuses.
bool renew(uintptr_t address, size_t size);

// ---- the process ------------------------------------------------------------------------------

// The environment's value, or NULL. Valid until the next call where the environment is not set up yet. NULL for every
// name in a process with more privileges than who started it: the environment is that one's.
const char* environment(const char* name);

// Calls `visit` with each "NAME=value" of the environment, long values cut off; with none where environment() gives none.
// Unlike the rest of the contract this may allocate, and the environment has to be set up.
void each_variable(void (*visit)(const char* entry));

void write_error(const char* text, size_t length);

// Replaces the file's content by what `produce` writes. False when the file cannot be opened.
class FileWriter {
 public:
  explicit FileWriter(const char* path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  bool is_open() const { return handle_ != -1; }
  void write(const char* text, size_t length);

 private:
  intptr_t handle_;
};

[[noreturn]] void abort_process();

// Ends the process at once: none of its own code runs any more.
[[noreturn]] void end_process(int code);

// ---- what was asked of the OS -----------------------------------------------------------------

enum class OsCall { reserve, release, commit, purge, move, thread, wait, wake, count };

const char* os_call_name(OsCall kind);
size_t os_calls(OsCall kind);
void count_os_call(OsCall kind);

}  // namespace rh::platform
