// For programs that reheap is not linked into.
#include "support/windows/linked_names.h"

namespace contract {

std::span<const LinkedName> linked_names() { return {}; }

}  // namespace contract
