// The helper thread.
#if defined(__i386__)
#include <asm/ldt.h>
#endif
#include <errno.h>
#include <sched.h>
#include <signal.h>

#include "base/bits.h"
#include "base/sanitizers.h"
#include "platform/linux/signals.h"
#include "platform/linux/syscall.h"
#include "platform/linux/thread_pointer.h"
#include "platform/platform.h"
#include "platform/posix/helper.h"
#include "platform/thread_slot.h"

namespace rh::platform {

#if RH_THREAD_SANITIZER

// It must know of every thread.
static constexpr bool (*launch_helper)(void (*main)()) = launch_pthread;

#else

namespace {

constexpr size_t kHelperStack = 32 * 1024;
alignas(64) RH_RARE_ZEROS constinit char g_helper_stack[kHelperStack] = {};

// Stands in for thread-local storage in the helper: the functions it calls in libc look for a stack guard behind the
// thread pointer and write errno, and ours look at t_slot, which is as in a thread that has no heap. Those of the
// thread that created it would be gone when that thread ends. Variables lie before the thread pointer on x86, and
// behind it elsewhere.
struct HelperStorage {
  char before[4096];
  void* self;
#if defined(__x86_64__) || defined(__i386__)
  char behind[1024];

  static constexpr size_t kHeader = 64;  // what libc reads there: the guards, the way into the kernel
#else
  char behind[16 * 1024];
#endif
};
alignas(64) RH_RARE_ZEROS constinit HelperStorage g_helper_storage = {};

// How much is needed on either side. The libraries' variables lie beyond the program's, of which there may be any
// number of bytes.
struct Extent {
  uintptr_t before = offsetof(HelperStorage, self);
  uintptr_t behind = sizeof(HelperStorage) - offsetof(HelperStorage, self);

  static constexpr uintptr_t kLongest = 64;  // of the variables

  void include(const void* variable) {
    const uintptr_t at = address_of(variable), pointer = thread_pointer();
    if (at < pointer && before < pointer - at) before = pointer - at;
    if (at >= pointer && behind < at - pointer + kLongest) behind = at - pointer + kLongest;
  }
  bool is_longer() const { return before + behind > sizeof(HelperStorage); }
};

// Where the helper's thread pointer leads; null when there is no memory for it. How much is needed never changes.
void* helper_pointer() {
  static constinit uintptr_t apart = 0;
  Extent extent;
  extent.include(&t_slot);
  extent.include(&errno);
  if (!extent.is_longer()) return &g_helper_storage.self;
  const size_t before = align_up(extent.before, page_size());
  if (apart == 0) {
    const size_t size = before + align_up(extent.behind, page_size());
    const uintptr_t start = reserve(size, page_size());
    if (start == 0) return nullptr;
    if (!commit(start, size)) {
      release(start, size);
      return nullptr;
    }
    apart = start + before;
  }
  return reinterpret_cast<void*>(apart);
}

// A raw clone rather than a pthread: creating it allocates nothing and takes no lock of the loader's, nor that of the
// stacks of threads, with which the C library frees. Any of them could wait for the very thread that is allocating.
// When the thread is gone the kernel clears g_helper_alive and wakes its waiters.
constexpr long kCloneFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                             CLONE_SETTLS | CLONE_CHILD_CLEARTID;

#if defined(__aarch64__)

long clone_helper(void* storage, void (*main)()) {
  register long number asm("x8") = SYS_clone;
  register long result asm("x0") = kCloneFlags;
  register char* stack asm("x1") = g_helper_stack + kHelperStack;
  register long parent_word asm("x2") = 0;
  register void* pointer asm("x3") = storage;
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
               : "r"(number), "r"(stack), "r"(parent_word), "r"(pointer), "r"(child_word),
                 "r"(entry), [exit] "i"(SYS_exit)
               : "memory");
  return result;
}

#elif defined(__riscv)

long clone_helper(void* storage, void (*main)()) {
  register long number asm("a7") = SYS_clone;
  register long result asm("a0") = kCloneFlags;
  register char* stack asm("a1") = g_helper_stack + kHelperStack;
  register long parent_word asm("a2") = 0;
  register void* pointer asm("a3") = storage;
  register void* child_word asm("a4") = &g_helper_alive;
  register void (*entry)() asm("a5") = main;
  asm volatile("ecall\n\t"
               "bnez a0, 1f\n\t"
               "mv s0, zero\n\t"
               "mv ra, zero\n\t"
               "jalr a5\n\t"
               "li a7, %[exit]\n\t"
               "mv a0, zero\n\t"
               "ecall\n\t"
               "ebreak\n"
               "1:"
               : "+r"(result)
               : "r"(number), "r"(stack), "r"(parent_word), "r"(pointer), "r"(child_word),
                 "r"(entry), [exit] "i"(SYS_exit)
               : "memory");
  return result;
}

#elif defined(__x86_64__)

long clone_helper(void* storage, void (*main)()) {
  long result;
  register long child_word asm("r10") = reinterpret_cast<long>(&g_helper_alive);
  register void* pointer asm("r8") = storage;
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
                 "r"(pointer), "r"(entry), [exit] "i"(SYS_exit)
               : "rcx", "r11", "memory");
  return result;
}

#else

long clone_helper(void* storage, void (*main)()) {
  // The descriptor selected by %gs; each thread has its own.
  unsigned selector;
  asm("mov %%gs, %0" : "=r"(selector));
  user_desc descriptor = {};
  descriptor.entry_number = selector >> 3;
  descriptor.base_addr = reinterpret_cast<unsigned>(storage);
  descriptor.limit = 0xfffff;
  descriptor.seg_32bit = 1;
  descriptor.limit_in_pages = 1;
  descriptor.useable = 1;
  void** top = reinterpret_cast<void**>(g_helper_stack + kHelperStack) - 1;
  *top = reinterpret_cast<void*>(main);
  long result;
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
               : "a"(SYS_clone), "b"(kCloneFlags), "c"(top), "d"(0), "S"(&descriptor),
                 "D"(&g_helper_alive), [exit] "i"(SYS_exit)
               : "memory");
  return result;
}

#endif

constinit std::atomic<void (*)()> g_helper_main{nullptr};

// Drops its capabilities: it may outlive those of a thread that gives them up without the C library's knowledge.
void run_helper() {
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

bool launch_helper(void (*main)()) {
  void* pointer = helper_pointer();
  if (pointer == nullptr) return false;
#if defined(__x86_64__) || defined(__i386__)
  __builtin_memcpy(pointer, reinterpret_cast<void*>(thread_pointer()), HelperStorage::kHeader);
  *static_cast<void**>(pointer) = pointer;
#endif
  g_helper_main.store(main, std::memory_order_relaxed);
  return !is_error(clone_helper(pointer, run_helper));
}

}  // namespace

#endif

void forget_helper() { g_helper_alive.store(0, std::memory_order_relaxed); }

bool start_helper(void (*main)(), bool (*is_wanted)()) {
  SignalMask old = {};
  set_signal_mask({~uint64_t{0}}, &old);
  bool started = start_helper_unheard(launch_helper, main, is_wanted);
  set_signal_mask(old, nullptr);
  return started;
}

}  // namespace rh::platform
