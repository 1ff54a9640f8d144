// The earliest point at which a program can allocate: in the resolver of an ifunc, while it is still being relocated
// and before thread-local variables have their initial values.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

void* blocks[3];

int answer_now() { return 42; }

}  // namespace

extern "C" {
// Only plain C here: nothing in the program is initialised yet.
__attribute__((used)) int (*resolve_answer())() {
  blocks[0] = malloc(3000);
  blocks[1] = calloc(3, 1000);
  free(malloc(100));
  if (blocks[0]) blocks[0] = realloc(blocks[0], 200000);
  return answer_now;
}

int answer() __attribute__((ifunc("resolve_answer")));
}

int main() {
  if (answer() != 42 || !blocks[0] || !blocks[1]) return 1;
  std::memset(blocks[0], 1, 200000);
  std::memset(blocks[1], 2, 3000);
  blocks[2] = malloc(3000);
  if (!blocks[2] || blocks[2] == blocks[0] || blocks[2] == blocks[1]) return 2;
  for (void* block : blocks) free(block);
  std::puts("served");
  return 0;
}
