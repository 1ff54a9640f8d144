// arena: spans taken, cut, lengthened, freed and returned, with calls to the OS that fail, against a model.
#include "support/arena_player.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rh::fake::limit_committed(size_t{64} << 20);
  rh::ArenaPlayer(rh::g_arena, Input(data, size), true).play();
  return 0;
}
