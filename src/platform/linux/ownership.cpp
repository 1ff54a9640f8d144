// Ownership by a thread as a robust mutex that the thread holds for life: when the thread ends, the kernel marks
// the mutex, and whoever asks next gets it. So the end of a thread needs no pthread key (programs count those), no
// C++ destructor (registering one takes the loader's lock) and no wrapper around pthread_create; and blocks freed
// by the thread's last destructors are nothing special.
#include <errno.h>
#include <pthread.h>

#include "base/sanitizers.h"
#include "platform/platform.h"

#if RH_THREAD_SANITIZER
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace rh::platform {

namespace {

#if RH_THREAD_SANITIZER
// The sanitizer does not see the kernel pass the mutex on: a key's destructor tells it, as late as is safe.
pthread_key_t g_ending_key;

void note_ending(void* ownership) { __tsan_release(ownership); }

pthread_key_t ending_key() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { pthread_key_create(&g_ending_key, note_ending); });
  return g_ending_key;
}

// A thread keeps the first heap it owns; others it owns only for a while.
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

void Ownership::reset() {
  static_assert(sizeof(pthread_mutex_t) <= sizeof(storage_));
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(reinterpret_cast<pthread_mutex_t*>(storage_), &attributes);
  pthread_mutexattr_destroy(&attributes);
}

bool Ownership::try_acquire() {
  pthread_mutex_t* mutex = reinterpret_cast<pthread_mutex_t*>(storage_);
  int result = pthread_mutex_trylock(mutex);
  if (result == EOWNERDEAD) result = pthread_mutex_consistent(mutex);
  if (result != 0) return false;
  note_acquired(storage_);
  return true;
}

void Ownership::release() {
  note_released(storage_);
  pthread_mutex_unlock(reinterpret_cast<pthread_mutex_t*>(storage_));
}

void Ownership::drop() {}

}  // namespace rh::platform
