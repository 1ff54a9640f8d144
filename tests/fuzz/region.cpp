// regions: blocks made, resized and freed in the caller's memory and near code, with calls to the OS that fail, against
// a model.
#include "heap/regions.h"
#include "support/region_player.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  alignas(16) static unsigned char memory[48 * 1024];
  Input input(data, size);
  const bool lent = input.below(2) == 0;
  const size_t offset = input.below(16);
  const auto made = lent ? rh::regions::make_in(memory + offset, sizeof(memory) - offset)
                         : rh::regions::make_near(reinterpret_cast<void*>(rh::fake::space_start()), 256 * 1024);
  FUZZ_EXPECT(made.region != nullptr);
  rh::RegionPlayer(*made.region, input).play();
  rh::regions::destroy(made.region);
  return 0;
}
