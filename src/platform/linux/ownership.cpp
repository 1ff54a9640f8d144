// Ownership by a thread is a robust futex that the thread holds for life: when the thread ends, the kernel marks the
// word, and the next thread to ask gets it. So the end of a thread needs no pthread key (programs count those), no C++
// destructor (registering one takes the loader's lock) and no wrapper around pthread_create; and blocks freed by the
// thread's last destructors need no special treatment.
//
// A thread has one list of such words, which the C library keeps for its own robust mutexes: ours join it, laid out as
// one of its mutexes. (Kernel: Documentation/locking/robust-futex-ABI.rst.) glibc registers the list of every thread.
// musl does so where a robust mutex is locked; a thread of its that ends goes through the list itself. So the same
// library serves both: which one it is shows in the list.
#include <linux/futex.h>
#include <pthread.h>

#include <cstddef>

#include "base/sanitizers.h"
#include "platform/linux/syscall.h"
#include "platform/linux/thread_pointer.h"
#include "platform/platform.h"

#if RH_THREAD_SANITIZER
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace rh::platform {

namespace {

// One of our words, with what the C library reads of a mutex in the list, where it reads it. The list is singly linked
// on 32-bit, doubly linked on 64-bit.
constexpr bool kLeadsBack = sizeof(void*) == 8;

struct Owned {
  std::atomic<uint32_t> words[kLeadsBack ? 6 : 4];  // of which one is ours, the others stay 0
  void* previous;                                   // unused on 32-bit
  void* next;
};
constexpr size_t kNextAt = offsetof(Owned, next);

// Which word of a mutex is the kernel's, and how far before its list a thread's number lies.
struct Shape {
  size_t word;
  size_t number_before;

  constexpr long to_word() const { return static_cast<long>(word * sizeof(uint32_t)) - static_cast<long>(kNextAt); }
};
constexpr Shape kOfGlibc = {0, (kLeadsBack ? 2 : 1) * sizeof(uint64_t)};
constexpr Shape kOfMusl = {1, 88};  // on 64-bit

// A thread's list, as the kernel knows it. The lowest bit of a link is not part of it; an empty list points to itself.
struct List {
  uintptr_t first;
  long to_word;   // from a link to its word
  void* pending;  // perhaps acquired but not in the list yet
};

// What is known of the C library. Where a thread's list and number lie, relative to its thread pointer: the same for
// every thread that it creates.
struct Layout {
  std::atomic<intptr_t> list{0};
  std::atomic<intptr_t> number{0};
  std::atomic<const Shape*> shape{nullptr};  // before the first word has an owner
};
constinit Layout g_layout;

const Shape& shape() {
  const Shape* known = g_layout.shape.load(std::memory_order_relaxed);
  return known != nullptr ? *known : kOfGlibc;
}

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

// Where musl keeps what it knows of a thread: some words from the thread pointer on, or before it.
#if defined(__x86_64__)
constexpr intptr_t kMuslThreadAt = 0;
#else
constexpr intptr_t kMuslThreadAt = -256;
#endif
constexpr size_t kMuslThreadSize = 256;

// An empty list of musl's that the kernel knows nothing of: it points to itself, and has not been described yet.
bool is_new_list(const List& list) {
  return list.first == reinterpret_cast<uintptr_t>(&list.first) && list.to_word == 0 && list.pending == nullptr;
}

// This thread's list in musl, known by the thread's number before it; null where the C library is another. No function
// of the C library is asked: a program may have put its own in front of it, which allocates.
List* musl_list(uint32_t number) {
  if (!kLeadsBack) return nullptr;
  const uintptr_t begin = thread_pointer() + static_cast<uintptr_t>(kMuslThreadAt);
  const uintptr_t end = begin + kMuslThreadSize - sizeof(List);
  for (uintptr_t at = begin + kOfMusl.number_before; at <= end; at += sizeof(uintptr_t)) {
    if (*reinterpret_cast<const uint32_t*>(at - kOfMusl.number_before) != number) continue;
    List* list = reinterpret_cast<List*>(at);
    if (is_new_list(*list)) return list;
  }
  return nullptr;
}

void note_layout(const Shape& shape, List* list, uint32_t number) {
  uintptr_t number_at = reinterpret_cast<uintptr_t>(list) - shape.number_before;
  uint32_t found = *reinterpret_cast<uint32_t*>(number_at);
  if (found != number) return;
  g_layout.number.store(static_cast<intptr_t>(number_at - thread_pointer()), std::memory_order_relaxed);
  g_layout.list.store(static_cast<intptr_t>(reinterpret_cast<uintptr_t>(list) - thread_pointer()),
                      std::memory_order_release);
}

// Asked by the process's first thread before another one owns anything.
List* learn_shape(List* list, uint32_t number) {
  const bool is_musl = list == nullptr ? (list = musl_list(number)) != nullptr : list->to_word == kOfMusl.to_word();
  g_layout.shape.store(is_musl && kLeadsBack ? &kOfMusl : &kOfGlibc, std::memory_order_relaxed);
  return list;
}

// Found by asking once and then from the layout: a sandbox that is closed by the time a thread first allocates allows
// what the C library's malloc does, which asks for neither.
Thread ask() {
  Thread self = {thread_number(), ask_for_list()};
  if (g_layout.shape.load(std::memory_order_relaxed) == nullptr) self.list = learn_shape(self.list, self.number);
  if (self.list != nullptr) note_layout(shape(), self.list, self.number);
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

// What comes behind `before` now is `link`. The list itself has no way back in musl: something else lies there.
void lead_back(List* list, uintptr_t link, void* before) {
  if (kLeadsBack && next_of(link) != reinterpret_cast<void**>(&list->first)) next_of(link)[-1] = before;
}

void enqueue(List* list, Owned* owned) {
  void** link = &owned->next;
  uintptr_t first = list->first;
  *link = reinterpret_cast<void*>(first);
  if constexpr (kLeadsBack) owned->previous = &list->first;
  lead_back(list, first, link);
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
  lead_back(list, next, before);
}

Owned& owned_in(unsigned char* storage) { return *reinterpret_cast<Owned*>(storage); }

std::atomic<uint32_t>& word_of(Owned& owned) { return owned.words[shape().word]; }

// musl's is 0 until it is registered.
bool is_of_known_shape(const List* list) {
  return list->to_word == shape().to_word() || (list->to_word == 0 && &shape() == &kOfMusl);
}

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
  Owned& owned = owned_in(storage_);
  if (word_of(owned).load(std::memory_order_relaxed) == 0) return;
  // In a fork's child musl's list is what the parent's thread had.
  if (List* list = this_thread().list; list != nullptr && &shape() == &kOfMusl) dequeue(list, &owned);
  word_of(owned).store(0, std::memory_order_relaxed);
}

// A thread without a list owns for ever: the kernel would not report its end.
bool Ownership::try_acquire() {
  if (g_layout.shape.load(std::memory_order_relaxed) != nullptr && !is_free()) return false;
  Owned& owned = owned_in(storage_);
  Thread self = this_thread();  // and with it the shape
  uint32_t before = word_of(owned).load(std::memory_order_relaxed);
  if ((before & FUTEX_TID_MASK) != 0) return false;
  List* list = self.list;
  if (list != nullptr && !is_of_known_shape(list)) list = nullptr;
  if (list != nullptr) list->pending = &owned.next;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  bool taken =
      word_of(owned).compare_exchange_strong(before, self.number, std::memory_order_acquire, std::memory_order_relaxed);
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
  word_of(owned).store(0, std::memory_order_release);
  if (list != nullptr) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    list->pending = nullptr;
  }
}

static uint32_t owner_in(const unsigned char* storage) {
  const Owned& owned = *reinterpret_cast<const Owned*>(storage);
  return owned.words[shape().word].load(std::memory_order_relaxed) & FUTEX_TID_MASK;
}

bool Ownership::is_mine() const { return owner_in(storage_) == this_thread().number; }

bool Ownership::is_free() const { return owner_in(storage_) == 0; }

// Only the thread itself may change its list.
bool Ownership::drop() {
  if (is_mine()) release();
  return is_free();
}

}  // namespace rh::platform
