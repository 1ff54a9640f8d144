// In the archive: what the linker took. Ours are weak there, so that a program's own take their place.
#include "entry/replaced.h"

namespace rh::operators {

RootsInUse roots_in_use() {
  return {{
      reinterpret_cast<void*>(static_cast<Make*>(&::operator new)),
      reinterpret_cast<void*>(static_cast<Make*>(&::operator new[])),
      reinterpret_cast<void*>(static_cast<MakeAligned*>(&::operator new)),
      reinterpret_cast<void*>(static_cast<MakeAligned*>(&::operator new[])),
      reinterpret_cast<void*>(static_cast<Free*>(&::operator delete)),
      reinterpret_cast<void*>(static_cast<Free*>(&::operator delete[])),
      reinterpret_cast<void*>(static_cast<FreeAligned*>(&::operator delete)),
      reinterpret_cast<void*>(static_cast<FreeAligned*>(&::operator delete[])),
  }};
}

}  // namespace rh::operators
