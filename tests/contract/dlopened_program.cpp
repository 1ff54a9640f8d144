// A program on the C library's heap that loads reheap by dlopen, as one of its plugins might: rh_ blocks beside
// malloc's, threads from before and after, and dlclose, which the blocks survive.
#include <dlfcn.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "support/library.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

struct Names {
  decltype(rh_malloc)* make;
  decltype(rh_calloc)* make_zero;
  decltype(rh_realloc)* resize;
  decltype(rh_free)* drop;
  decltype(rh_owns)* owns;
};

template <class Function> Function* name_in(void* library, const char* name) {
  void* found = dlsym(library, name);
  NEED(found, "%s", name);
  return reinterpret_cast<Function*>(found);
}

void use(const Names& heap, std::uint64_t seed) {
  Random random(seed);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t size = random.size(100 * KiB);
    auto* block = static_cast<char*>(heap.make(size));
    NEED(block && heap.owns(block));
    fill(block, size, seed);
    auto* zero = static_cast<char*>(heap.make_zero(1, size));
    NEED(zero && all_zero(zero, size));
    void* plain = malloc(size);
    NEED(plain && !heap.owns(plain), "malloc is still the C library's");
    block = static_cast<char*>(heap.resize(block, size * 2));
    NEED(block && intact(block, size, seed));
    heap.drop(block);
    heap.drop(zero);
    free(plain);
  }
}

Names load(void** library) {
  *library = dlopen(std::getenv("CONTRACT_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
  NEED(*library, "%s", dlerror());
  return {name_in<decltype(rh_malloc)>(*library, "rh_malloc"), name_in<decltype(rh_calloc)>(*library, "rh_calloc"),
          name_in<decltype(rh_realloc)>(*library, "rh_realloc"), name_in<decltype(rh_free)>(*library, "rh_free"),
          name_in<decltype(rh_owns)>(*library, "rh_owns")};
}

}  // namespace

int main() {
  const std::string c_library = server_of(dlsym(RTLD_DEFAULT, "malloc"));
  std::atomic<const Names*> ready{nullptr};
  std::vector<std::thread> threads;
  // These start before the library is loaded, and end after it is closed.
  std::atomic<bool> closed{false};
  for (std::uint64_t at = 0; at < 3; ++at) {
    threads.emplace_back([&, at] {
      while (!ready) nap(0.001);
      use(*ready.load(), at);
      while (!closed) nap(0.001);
      use(*ready.load(), at);
    });
  }
  void* library = nullptr;
  Names heap = load(&library);
  ready = &heap;
  threads.emplace_back([&] { use(heap, 9); });
  use(heap, 10);
  NEED(server_of(dlsym(RTLD_DEFAULT, "malloc")) == c_library, "loading it took malloc over");

  void* left = heap.make(5000);
  fill(left, 5000, 4);
  for (int round = 0; round < 20; ++round) {
    NEED(dlclose(library) == 0);
    heap = load(&library);
  }
  NEED(dlclose(library) == 0);
  closed = true;
  for (std::thread& thread : threads) thread.join();
  NEED(intact(left, 5000, 4));
  heap.drop(left);
  std::thread(use, heap, 11).join();
  return 0;
}
