// A program may create every pthread key the system has: the allocator uses none. Without GoogleTest, which uses some.
#include <limits.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

namespace {

pthread_key_t keys[PTHREAD_KEYS_MAX + 1];

void drop(void* block) { free(block); }

// Every key's value is a block, freed as the thread ends.
void* use_all_keys(void*) {
  for (int at = 0; at < PTHREAD_KEYS_MAX; ++at)
    if (pthread_setspecific(keys[at], malloc(40)) != 0) std::exit(4);
  return nullptr;
}

}  // namespace

int main() {
  free(malloc(100));
  int created = 0;
  while (created <= PTHREAD_KEYS_MAX && pthread_key_create(&keys[created], drop) == 0) ++created;
  std::printf("%d of %d keys\n", created, PTHREAD_KEYS_MAX);
  if (created != PTHREAD_KEYS_MAX) return 1;
  for (int at = 0; at < 5; ++at) {
    pthread_t id;
    if (pthread_create(&id, nullptr, use_all_keys, nullptr) != 0) return 2;
    if (pthread_join(id, nullptr) != 0) return 3;
  }
  return 0;
}
