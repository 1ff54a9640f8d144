// Threads: identity, waiting, and the helper thread.
#if defined(__i386__)
#include <asm/ldt.h>
#endif
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "base/pause.h"
#include "base/sanitizers.h"
#include "platform/linux/syscall.h"
#include "platform/linux/thread_pointer.h"
#include "platform/platform.h"
#include "platform/posix/helper.h"

// glibc's, since 2.1 and 2.32; weak, because other C libraries have none.
extern "C" {
[[gnu::weak]] void _IO_list_lock();
[[gnu::weak]] void _IO_list_unlock();
[[gnu::weak]] void _IO_list_resetlock();
[[gnu::weak]] extern char __libc_single_threaded;
}

namespace rh::platform {

// False where the C library does not say.
bool is_single_threaded() { return &__libc_single_threaded != nullptr && __libc_single_threaded != 0; }

namespace {

// The kernel's signal set: 64 bits on every architecture here.
struct SignalMask {
  uint64_t bits;
};

void set_signal_mask(const SignalMask& mask, SignalMask* old) {
  system_call(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&mask), reinterpret_cast<long>(old),
              sizeof(mask.bits));
}

}  // namespace

ThreadToken thread_token() { return thread_pointer(); }

uint64_t thread_id() { return static_cast<uint64_t>(system_call(SYS_gettid)); }

void back_off(unsigned attempt) {
  constexpr unsigned kSpins = 64;
  constexpr unsigned kYields = 32;
  if (attempt < kSpins) {
    pause_briefly();
    return;
  }
  if (attempt < kSpins + kYields) {
    system_call(SYS_sched_yield);
    return;
  }
  timespec pause = {0, 50 * 1000};
  system_call(SYS_nanosleep, reinterpret_cast<long>(&pause), 0);
}

void wait(const std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_ms) {
  count_os_call(OsCall::wait);
  timespec timeout = {static_cast<time_t>(timeout_ms / 1000), static_cast<long>(timeout_ms % 1000) * 1000000};
  system_call(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAIT_PRIVATE, static_cast<long>(expected),
              reinterpret_cast<long>(&timeout));
}

void wake(const std::atomic<uint32_t>& word) {
  count_os_call(OsCall::wake);
  system_call(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAKE_PRIVATE, 1);
}

// exit stops no thread before it has run its handlers.
bool others_are_gone() { return false; }

bool thread_is_gone(ThreadToken) { return false; }
bool helper_is_lost() { return false; }

namespace {

using Handler = void (*)();
constinit Handler g_before_fork = nullptr;
constinit Handler g_after_fork_in_parent = nullptr;
constinit Handler g_after_fork_in_child = nullptr;
constinit bool g_holds_streams = false;  // the forking thread's

constinit std::atomic<bool> g_streams_allocate{false};

// glibc takes its list of streams after these handlers and before its own malloc's locks, because a thread that walks
// the list waits for streams whose users allocate. So it is taken before our locks as well, but not where glibc would
// not take it, for only then does glibc reset the list in the child.
bool take_streams() {
  if (_IO_list_lock == nullptr || is_single_threaded()) return false;
  if (!g_streams_allocate.load(std::memory_order_relaxed)) return false;
  _IO_list_lock();
  if (g_streams_allocate.load(std::memory_order_relaxed)) return true;
  _IO_list_unlock();
  return false;
}

void before_fork() {
  g_holds_streams = take_streams();
  g_before_fork();
}

void after_fork_in_parent() {
  bool holds_streams = g_holds_streams;
  g_after_fork_in_parent();
  if (holds_streams) _IO_list_unlock();
}

void after_fork_in_child() {
  if (g_holds_streams) _IO_list_resetlock();
  g_after_fork_in_child();
}

// When this library's destructors run the C library forgets these handlers, even in the middle of another thread's
// fork: the others would then never release what the first of them took, and the program's exit would wait for it. So
// before that, once no fork holds the list, no handler takes it any more.
[[gnu::destructor]] void leave_streams() {
  if (!take_streams()) return;
  g_streams_allocate.store(false, std::memory_order_relaxed);
  _IO_list_unlock();
}

}  // namespace

void note_streams_allocate() { g_streams_allocate.store(true, std::memory_order_relaxed); }

// Registered first, so called last before a fork and first after it.
void on_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  g_before_fork = before;
  g_after_fork_in_parent = in_parent;
  g_after_fork_in_child = in_child;
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void forget_helper() { g_helper_alive.store(0, std::memory_order_relaxed); }

#if !RH_THREAD_SANITIZER && (defined(__x86_64__) || defined(__i386__) || defined(__aarch64__))

static constexpr size_t kHelperStack = 32 * 1024;
alignas(64) RH_RARE_ZEROS static constinit char g_helper_stack[kHelperStack] = {};

// Stands in for thread-local storage in the helper: the functions it calls in libc look for a stack guard behind the
// thread pointer and write errno before it. Those of the thread that created it would be gone when that thread ends.
struct HelperStorage {
  char before[4096];
  void* self;
#if defined(__aarch64__)  // where thread-local variables lie behind it, and before it what libc knows of a thread
  char behind[16 * 1024];
#else
  char behind[1024];

  static constexpr size_t kHeader = 64;  // what libc reads there: the guards, the way into the kernel
#endif
};
alignas(64) RH_RARE_ZEROS static constinit HelperStorage g_helper_storage = {};

// A raw clone rather than a pthread: creating it allocates nothing and takes no lock of the loader's, nor that of the
// stacks of threads, with which the C library frees. Any of them could wait for the very thread that is allocating.
// When the thread is gone the kernel clears g_helper_alive and wakes its waiters.
static constexpr long kCloneFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                                    CLONE_SETTLS | CLONE_CHILD_CLEARTID;

#if defined(__aarch64__)

static long clone_helper(void (*main)()) {
  register long number asm("x8") = SYS_clone;
  register long result asm("x0") = kCloneFlags;
  register char* stack asm("x1") = g_helper_stack + kHelperStack;
  register long parent_word asm("x2") = 0;
  register void* storage asm("x3") = &g_helper_storage.self;
  register void* child_word asm("x4") = &g_helper_alive;
  register void (*entry)() asm("x5") = main;
  asm volatile("svc 0\n\t"
               "cbnz x0, 1f\n\t"
               "mov x29, xzr\n\t"
               "mov x30, xzr\n\t"
               "blr x5\n\t"
               "mov x8, %[exit]\n\t"
               "mov x0, xzr\n\t"
               "svc 0\n\t"
               "brk 1\n"
               "1:"
               : "+r"(result)
               : "r"(number), "r"(stack), "r"(parent_word), "r"(storage), "r"(child_word),
                 "r"(entry), [exit] "i"(SYS_exit)
               : "memory");
  return result;
}

// The libraries' variables lie behind the program's, of which there may be any number of bytes.
static bool storage_has(const void* variable) {
  constexpr size_t kLongest = 64;  // of those that are asked for
  uintptr_t at = address_of(variable) - thread_pointer() + offsetof(HelperStorage, self);
  return at < sizeof(HelperStorage) - kLongest;
}

#else

static long clone_helper(void (*main)()) {
  __builtin_memcpy(&g_helper_storage.self, reinterpret_cast<void*>(thread_pointer()), HelperStorage::kHeader);
  g_helper_storage.self = &g_helper_storage.self;
  long result;
#if defined(__x86_64__)
  register long child_word asm("r10") = reinterpret_cast<long>(&g_helper_alive);
  register long storage asm("r8") = reinterpret_cast<long>(&g_helper_storage.self);
  register void (*entry)() asm("r12") = main;  // survives the call, and is not the frame pointer
  asm volatile("syscall\n\t"
               "test %%rax, %%rax\n\t"
               "jnz 1f\n\t"
               "xor %%ebp, %%ebp\n\t"
               "call *%%r12\n\t"
               "mov %[exit], %%eax\n\t"
               "xor %%edi, %%edi\n\t"
               "syscall\n\t"
               "hlt\n"
               "1:"
               : "=a"(result)
               : "a"(SYS_clone), "D"(kCloneFlags), "S"(g_helper_stack + kHelperStack), "d"(0), "r"(child_word),
                 "r"(storage), "r"(entry), [exit] "i"(SYS_exit)
               : "rcx", "r11", "memory");
#else
  // The descriptor selected by %gs; each thread has its own.
  unsigned selector;
  asm("mov %%gs, %0" : "=r"(selector));
  user_desc storage = {};
  storage.entry_number = selector >> 3;
  storage.base_addr = reinterpret_cast<unsigned>(&g_helper_storage.self);
  storage.limit = 0xfffff;
  storage.seg_32bit = 1;
  storage.limit_in_pages = 1;
  storage.useable = 1;
  void** top = reinterpret_cast<void**>(g_helper_stack + kHelperStack) - 1;
  *top = reinterpret_cast<void*>(main);
  asm volatile("int $0x80\n\t"
               "test %%eax, %%eax\n\t"
               "jnz 1f\n\t"
               "pop %%eax\n\t"
               "xor %%ebp, %%ebp\n\t"
               "call *%%eax\n\t"
               "mov %[exit], %%eax\n\t"
               "xor %%ebx, %%ebx\n\t"
               "int $0x80\n\t"
               "hlt\n"
               "1:"
               : "=a"(result)
               : "a"(SYS_clone), "b"(kCloneFlags), "c"(top), "d"(0), "S"(&storage),
                 "D"(&g_helper_alive), [exit] "i"(SYS_exit)
               : "memory");
#endif
  return result;
}

#endif

static constinit std::atomic<void (*)()> g_helper_main{nullptr};

// Drops its capabilities: it may outlive those of a thread that gives them up without the C library's knowledge.
static void run_helper() {
  struct {
    uint32_t version;
    int thread;
  } self = {0x20080522 /* _LINUX_CAPABILITY_VERSION_3 */, 0};
  struct {
    uint32_t effective, permitted, inheritable;
  } none[2] = {};
  system_call(SYS_capset, reinterpret_cast<long>(&self), reinterpret_cast<long>(none));
  g_helper_main.load(std::memory_order_relaxed)();
}

static bool launch_helper(void (*main)()) {
#if defined(__aarch64__)
  if (!storage_has(&t_slot) || !storage_has(&errno)) return launch_pthread(main);
#endif
  g_helper_main.store(main, std::memory_order_relaxed);
  return !is_error(clone_helper(run_helper));
}

#else

// Sanitizers must know of every thread, and other architectures have no clone sequence above. There a free that the C
// library makes with its lock of the stacks held must not be the one that starts the helper.
static constexpr bool (*launch_helper)(void (*main)()) = launch_pthread;

#endif

bool start_helper(void (*main)(), bool (*is_wanted)()) {
  SignalMask old = {};
  set_signal_mask({~uint64_t{0}}, &old);
  bool started = start_helper_unheard(launch_helper, main, is_wanted);
  set_signal_mask(old, nullptr);
  return started;
}

}  // namespace rh::platform
