// Ownership by a thread is a robust futex that the thread holds for life: when the thread ends, the kernel marks the
// word, and the next thread to ask gets it. So the end of a thread needs no pthread key (programs count those), no C++
// destructor (registering one takes the loader's lock) and no wrapper around pthread_create; and blocks freed by the
// thread's last destructors need no special treatment.
//
// A thread has one list of such words, registered by the C library for its own robust mutexes: ours join it, laid out
// as one of its mutexes. The pthread functions are not called, because programs wrap them, and before glibc 2.34 they
// lock nothing until libpthread is loaded. (Kernel: Documentation/locking/robust-futex-ABI.rst.)
#include <linux/futex.h>

#include <cstddef>

#include "base/sanitizers.h"
#include "platform/linux/syscall.h"
#include "platform/linux/thread_pointer.h"
#include "platform/platform.h"

#if RH_THREAD_SANITIZER
#include <pthread.h>
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace rh::platform {

namespace {

// One of our words, with what the C library reads of a mutex in the list, where it reads it. The list is singly linked
// on 32-bit, doubly linked on 64-bit.
constexpr bool kLeadsBack = sizeof(void*) == 8;

struct Owned {
  std::atomic<uint32_t> word;
  uint32_t not_ours[kLeadsBack ? 5 : 3];
  void* previous;  // unused on 32-bit
  void* next;
};
constexpr size_t kNextAt = offsetof(Owned, next);

// A thread's list, as the kernel knows it. The lowest bit of a link is not part of it; an empty list points to itself.
struct List {
  uintptr_t first;
  long to_word;   // from a link to its word
  void* pending;  // perhaps acquired but not in the list yet
};

// Where a thread's list and number lie, relative to its thread pointer: the same for every thread that the C library
// creates.
struct Layout {
  std::atomic<intptr_t> list{0};
  std::atomic<intptr_t> number{0};
};
constinit Layout g_layout;

uint32_t thread_number() { return static_cast<uint32_t>(system_call(SYS_gettid)); }

List* ask_for_list() {
  List* list = nullptr;
  size_t size = 0;
  long result = system_call(SYS_get_robust_list, 0, reinterpret_cast<long>(&list), reinterpret_cast<long>(&size));
  return is_error(result) || size != sizeof(List) ? nullptr : list;
}

// A thread as the kernel knows it: its number, and its list, or null where none is registered.
struct Thread {
  uint32_t number;
  List* list;
};

// Found by asking the kernel once and then from the layout: a sandbox that is closed by the time a thread first
// allocates allows what the C library's malloc does, which asks for neither.
Thread ask() {
  Thread self = {thread_number(), ask_for_list()};
  if (self.list == nullptr) return self;
  uintptr_t list = reinterpret_cast<uintptr_t>(self.list);
  uintptr_t number = list - (kLeadsBack ? 2 : 1) * sizeof(uint64_t);
  uint32_t found = *reinterpret_cast<uint32_t*>(number);
  if (found != self.number) return self;
  g_layout.number.store(static_cast<intptr_t>(number - thread_pointer()), std::memory_order_relaxed);
  g_layout.list.store(static_cast<intptr_t>(list - thread_pointer()), std::memory_order_release);
  return self;
}

Thread this_thread() {
  intptr_t at = g_layout.list.load(std::memory_order_acquire);
  if (at == 0) return ask();
  uintptr_t self = thread_pointer();
  List* list = reinterpret_cast<List*>(self + static_cast<uintptr_t>(at));
  uintptr_t number_at = self + static_cast<uintptr_t>(g_layout.number.load(std::memory_order_relaxed));
  uint32_t number = *reinterpret_cast<uint32_t*>(number_at);
  // A thread that the C library did not create has no such fields, or empty ones.
  return number == 0 || list->first == 0 ? ask() : Thread{number, list};
}

void** next_of(uintptr_t link) { return reinterpret_cast<void**>(link & ~uintptr_t{1}); }

void enqueue(List* list, Owned* owned) {
  void** link = &owned->next;
  uintptr_t first = list->first;
  *link = reinterpret_cast<void*>(first);
  if constexpr (kLeadsBack) {
    owned->previous = &list->first;
    next_of(first)[-1] = link;
  }
  std::atomic_signal_fence(std::memory_order_release);
  list->first = reinterpret_cast<uintptr_t>(link);
}

void dequeue(List* list, Owned* owned) {
  uintptr_t next = reinterpret_cast<uintptr_t>(owned->next);
  void** before = next_of(reinterpret_cast<uintptr_t>(&list->first));
  while (next_of(reinterpret_cast<uintptr_t>(*before)) != &owned->next) {
    before = next_of(reinterpret_cast<uintptr_t>(*before));
    if (before == reinterpret_cast<void**>(&list->first)) return;  // a fork's child has a list of its own
  }
  *before = owned->next;
  if constexpr (kLeadsBack) next_of(next)[-1] = before;
}

Owned& owned_in(unsigned char* storage) { return *reinterpret_cast<Owned*>(storage); }

#if RH_THREAD_SANITIZER
// The sanitizer does not see the kernel pass the word on: a key's destructor announces it, as late as is safe.
void note_ending(void* ownership) { __tsan_release(ownership); }

pthread_key_t ending_key() {
  static pthread_key_t key;
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { pthread_key_create(&key, note_ending); });
  return key;
}

// A thread keeps the first heap it owns; it owns others only for a while.
void note_acquired(void* ownership) {
  __tsan_acquire(ownership);
  if (pthread_getspecific(ending_key()) == nullptr) pthread_setspecific(ending_key(), ownership);
}

void note_released(void* ownership) {
  __tsan_release(ownership);
  if (pthread_getspecific(ending_key()) == ownership) pthread_setspecific(ending_key(), nullptr);
}
#else
void note_acquired(void*) {}
void note_released(void*) {}
#endif

}  // namespace

void prepare() { this_thread(); }

void Ownership::reset() {
  static_assert(sizeof(Owned) <= sizeof(storage_));
  owned_in(storage_).word.store(0, std::memory_order_relaxed);
}

// A thread without a list owns for ever: the kernel would not report its end.
bool Ownership::try_acquire() {
  Owned& owned = owned_in(storage_);
  uint32_t before = owned.word.load(std::memory_order_relaxed);
  if ((before & FUTEX_TID_MASK) != 0) return false;
  Thread self = this_thread();
  List* list = self.list;
  if (list != nullptr && list->to_word != -static_cast<long>(kNextAt)) list = nullptr;
  if (list != nullptr) list->pending = &owned.next;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  bool taken =
      owned.word.compare_exchange_strong(before, self.number, std::memory_order_acquire, std::memory_order_relaxed);
  if (list != nullptr) {
    if (taken) enqueue(list, &owned);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    list->pending = nullptr;
  }
  if (taken) note_acquired(storage_);
  return taken;
}

void Ownership::release() {
  note_released(storage_);
  Owned& owned = owned_in(storage_);
  List* list = this_thread().list;
  if (list != nullptr) {
    list->pending = &owned.next;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    dequeue(list, &owned);
  }
  owned.word.store(0, std::memory_order_release);
  if (list != nullptr) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    list->pending = nullptr;
  }
}

static uint32_t owner_in(const unsigned char* storage) {
  return reinterpret_cast<const Owned*>(storage)->word.load(std::memory_order_relaxed) & FUTEX_TID_MASK;
}

bool Ownership::is_mine() const { return owner_in(storage_) == this_thread().number; }

bool Ownership::is_free() const { return owner_in(storage_) == 0; }

void Ownership::drop() {}

}  // namespace rh::platform
