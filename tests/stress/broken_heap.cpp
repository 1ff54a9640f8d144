// Stands before malloc and spoils one block in a few thousand in the way that STRESS_BREAK says:
// the stress must notice each.
#include <dlfcn.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<unsigned> calls{0};

bool now(const char* way) {
  static const char* const chosen = std::getenv("STRESS_BREAK");
  return chosen && std::strcmp(chosen, way) == 0 && ++calls % 3000 == 0;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

std::atomic<void*> twice{nullptr};

}  // namespace

extern "C" {

void* malloc(std::size_t size) {
  static auto* const pass_on = next<void*(std::size_t)>("malloc");
  // The block goes out a second time while it is live.
  if (size == 100 || (size > 16 && size < 64)) {
    if (now("twice")) {
      void* block = twice.exchange(nullptr);
      if (block && malloc_usable_size(block) >= size) return block;
    }
    void* block = pass_on(size);
    twice = block;
    return block;
  }
  return pass_on(size);
}

void* calloc(std::size_t count, std::size_t size) {
  static auto* const pass_on = next<void*(std::size_t, std::size_t)>("calloc");
  void* block = pass_on(count, size);
  if (block && count * size > 0 && now("dirty")) static_cast<char*>(block)[count * size / 2] = 1;
  return block;
}

void* realloc(void* block, std::size_t size) {
  static auto* const pass_on = next<void*(void*, std::size_t)>("realloc");
  void* moved = pass_on(block, size);
  if (moved && block && size > 0 && now("loses")) static_cast<char*>(moved)[0] ^= 1;
  return moved;
}
}
