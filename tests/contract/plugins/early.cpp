// Allocates as early as a library can: in a constructor of the first priority open to programs, in a library that is
// initialised before the one that serves malloc and does not name it.
#include <cstdlib>
#include <cstring>

namespace {

void* blocks[100];
bool sound = true;

__attribute__((constructor(101))) void begin() {
  for (std::size_t at = 0; at < 100; ++at) {
    blocks[at] = at % 3 == 0 ? calloc(at + 1, 10) : malloc(at * at * 20 + 1);
    if (!blocks[at]) sound = false;
    if (blocks[at]) std::memset(blocks[at], static_cast<int>(at), at + 1);
  }
  for (std::size_t at = 0; at < 100; at += 2) {
    free(blocks[at]);
    blocks[at] = nullptr;
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) bool early_blocks_sound() {
  for (std::size_t at = 1; at < 100; at += 2) {
    const auto* bytes = static_cast<const unsigned char*>(blocks[at]);
    for (std::size_t byte = 0; byte <= at; ++byte) sound = sound && bytes[byte] == at;
    free(blocks[at]);
  }
  return sound;
}
