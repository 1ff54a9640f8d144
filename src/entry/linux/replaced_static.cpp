// In the archive: what the linker took. Ours are weak there, so that a program's own take their place.
#include "entry/replaced.h"

namespace rh::operators {

void* root_in_use(Root root) {
  switch (root) {
  case Root::make: return reinterpret_cast<void*>(static_cast<Make*>(&::operator new));
  case Root::make_array: return reinterpret_cast<void*>(static_cast<Make*>(&::operator new[]));
  case Root::make_aligned: return reinterpret_cast<void*>(static_cast<MakeAligned*>(&::operator new));
  case Root::make_array_aligned: return reinterpret_cast<void*>(static_cast<MakeAligned*>(&::operator new[]));
  case Root::free: return reinterpret_cast<void*>(static_cast<Free*>(&::operator delete));
  case Root::free_array: return reinterpret_cast<void*>(static_cast<Free*>(&::operator delete[]));
  case Root::free_aligned: return reinterpret_cast<void*>(static_cast<FreeAligned*>(&::operator delete));
  case Root::free_array_aligned: return reinterpret_cast<void*>(static_cast<FreeAligned*>(&::operator delete[]));
  case Root::count: break;
  }
  return nullptr;
}

}  // namespace rh::operators
