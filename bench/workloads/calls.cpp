// One way to take a block and give it back, to be counted by instructions.
//
//   calls malloc|new|typed|realloc SIZE N    N times: take SIZE bytes and free them; realloc: lengthen a block of SIZE
//                                            bytes by a byte, and shorten it again
//
// Two runs of different N differ by the loop alone: start-up and first use cancel out.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <new>

namespace {

// A type that contains pointers, of those that Clang's tokens tell apart.
constexpr size_t kToken = ~size_t{0} / 2 + 4711;

void by_malloc(size_t size, long count) {
  for (long at = 0; at < count; ++at) free(malloc(size));
}

void by_new(size_t size, long count) {
  for (long at = 0; at < count; ++at) ::operator delete(::operator new(size), size);
}

void by_realloc(size_t size, long count) {
  void* block = malloc(size);
  for (long at = 0; at < count; ++at) block = realloc(realloc(block, size + 1), size);
  free(block);
}

void by_type(size_t size, long count) {
  auto allocate = reinterpret_cast<void* (*)(size_t, size_t)>(dlsym(RTLD_DEFAULT, "__alloc_token_malloc"));
  if (allocate == nullptr) exit(3);
  for (long at = 0; at < count; ++at) free(allocate(size, kToken));
}

struct Way {
  const char* name;
  void (*run)(size_t size, long count);
};
constexpr Way kWays[] = {{"malloc", by_malloc}, {"new", by_new}, {"typed", by_type}, {"realloc", by_realloc}};

}  // namespace

int main(int count, char** arguments) {
  long size = count == 4 ? atol(arguments[2]) : 0, rounds = count == 4 ? atol(arguments[3]) : 0;
  for (const Way& way : kWays) {
    if (size <= 0 || rounds <= 0 || strcmp(arguments[1], way.name) != 0) continue;
    way.run(static_cast<size_t>(size), rounds);
    return 0;
  }
  fputs("usage: calls malloc|new|typed|realloc SIZE COUNT\n", stderr);
  return 2;
}
