// arena: the set of free spans, against a set of the C++ library's.
#include "support/span_set_player.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rh::SpanSetPlayer(Input(data, size)).play();
  return 0;
}
