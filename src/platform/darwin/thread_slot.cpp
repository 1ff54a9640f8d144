// Each thread's word: a pthread key. The C library reads what a thread keeps under a key from an array in the thread,
// which the processor leads to; so do we, once we have seen that it is so.
#include "platform/thread_slot.h"

#include <limits.h>
#include <pthread.h>

#include <atomic>

namespace rh::platform {

namespace {

// Keys of the system's own come first. The last one for programs is given out when there is no other.
constexpr pthread_key_t kFirstKey = 256, kLastKey = kFirstKey + PTHREAD_KEYS_MAX - 1;
constexpr uintptr_t place_of(pthread_key_t key) { return key * sizeof(void*); }

constexpr pthread_key_t kNoKey = ~pthread_key_t{0};
constinit std::atomic<pthread_key_t> g_key{kNoKey};

}  // namespace

constinit uintptr_t g_thread_word_at = place_of(kLastKey);

void* thread_word_slow() {
  if (void* word = thread_word(); word != nullptr) return word;
  const pthread_key_t key = g_key.load(std::memory_order_acquire);
  return key == kNoKey || thread_words_are_near() ? nullptr : pthread_getspecific(key);
}

// None has a function to be called at a thread's end: the heap stays the thread's until the kernel says that it is
// gone, whatever its last destructors free.
static pthread_key_t take_key() {
  pthread_key_t key = g_key.load(std::memory_order_acquire), mine = kNoKey;
  if (key != kNoKey || pthread_key_create(&mine, nullptr) != 0) return key;
  if (g_key.compare_exchange_strong(key, mine, std::memory_order_acq_rel)) return mine;
  pthread_key_delete(mine);
  return key;
}

// Looks for itself whether the word is where it is read from.
static void find_place(pthread_key_t key, const void* word) {
  if (key < kFirstKey || key >= kLastKey) return;
  const uintptr_t before = g_thread_word_at;
  g_thread_word_at = place_of(key);
  if (thread_word() != word) g_thread_word_at = before;
}

void set_thread_word(void* word) {
  const pthread_key_t key = take_key();
  if (key == kNoKey || pthread_setspecific(key, word) != 0) return;
  if (!thread_words_are_near() && word != nullptr) find_place(key, word);
}

bool thread_words_are_near() { return g_thread_word_at != place_of(kLastKey); }

}  // namespace rh::platform
