// Stands before malloc and spoils one block in a thousand in the way that STRESS_BREAK says: the stress must notice
// each before the heap behind does.
#include <dlfcn.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <utility>

namespace {

std::atomic<unsigned> g_calls{0};

bool breaks(const char* what) {
  static const char* const chosen = std::getenv("STRESS_BREAK");
  return chosen && std::strcmp(chosen, what) == 0 && ++g_calls % 1000 == 0;
}

template <class Function> Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Blocks that went out twice. They are never freed: glibc would end the process before the stress has seen anything.
class Twice {
 public:
  void note(void* block) {
    const std::lock_guard guard(lock_);
    live_ = block;
  }
  // The block that was noted last, if it is still live and large enough; or null.
  void* give_again(std::size_t size) {
    const std::lock_guard guard(lock_);
    if (!live_ || malloc_usable_size(live_) < size || given_ == std::end(blocks_)) return nullptr;
    return *given_++ = std::exchange(live_, nullptr);
  }
  // Whether it may be freed.
  bool end(const void* block) {
    const std::lock_guard guard(lock_);
    if (block == live_) live_ = nullptr;
    return std::find(blocks_, given_, block) == given_;
  }

 private:
  std::mutex lock_;
  void* live_ = nullptr;
  void* blocks_[64] = {};
  void** given_ = blocks_;
};

Twice g_twice;

}  // namespace

extern "C" {

void* malloc(std::size_t size) {
  static auto* const pass_on = next<void*(std::size_t)>("malloc");
  const bool watched = size > 40 && size < 64;  // larger than what std::thread asks for
  if (watched && breaks("twice"))
    if (void* const block = g_twice.give_again(size)) return block;
  void* const block = pass_on(size);
  if (watched) g_twice.note(block);
  return block;
}

void free(void* block) {
  static auto* const pass_on = next<void(void*)>("free");
  if (g_twice.end(block)) pass_on(block);
}

void* calloc(std::size_t count, std::size_t size) {
  static auto* const pass_on = next<void*(std::size_t, std::size_t)>("calloc");
  void* block = pass_on(count, size);
  if (block && count * size > 0 && breaks("dirty")) static_cast<char*>(block)[count * size / 2] = 1;
  return block;
}

void* realloc(void* block, std::size_t size) {
  static auto* const pass_on = next<void*(void*, std::size_t)>("realloc");
  if (!g_twice.end(block)) {
    void* const copy = malloc(size);
    return copy ? std::memcpy(copy, block, std::min(size, malloc_usable_size(block))) : nullptr;
  }
  void* moved = pass_on(block, size);
  if (moved && block && size > 0 && breaks("loses")) static_cast<char*>(moved)[0] ^= 1;
  return moved;
}
}
