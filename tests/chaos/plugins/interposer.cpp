// What profilers and test tools preload: wrappers around C library functions that allocate and have thread-local
// variables.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

namespace {

thread_local char calls[64 * 1024];
thread_local bool inside = false;

void allocate() {
  if (inside) return;
  inside = true;
  ++calls[sizeof calls / 2];
  void* volatile block = std::malloc(200);
  std::free(block);
  void* volatile large = std::malloc(100 * 1024);
  std::free(large);
  inside = false;
}

template <class Function> Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

extern const char chaos_interposer;
const char chaos_interposer = 1;

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  allocate();
  return static_cast<int>(syscall(SYS_clock_gettime, clock, now));
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  static auto* const real = next<int(pthread_mutex_t*)>("pthread_mutex_trylock");
  allocate();
  return real(mutex);
}

int sched_yield() noexcept {
  allocate();
  return static_cast<int>(syscall(SYS_sched_yield));
}
}
