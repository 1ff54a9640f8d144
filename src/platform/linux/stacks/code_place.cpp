#include "base/compiler.h"
#include "platform/linux/stacks/memory_map.h"
#include "platform/platform.h"

namespace rh::platform {

namespace {

RH_RARE_ZEROS constinit char g_map[stacks::kMapBuffer];

void keep_name(stacks::Piece path, CodePlace* place) {
  for (size_t at = 0; at < path.length; ++at)
    if (path.text[at] == '/') path.skip(at + 1), at = size_t{0} - 1;
  size_t length = path.length < CodePlace::kMostName ? path.length : CodePlace::kMostName - 1;
  __builtin_memcpy(place->file, path.text, length);
  place->file[length] = 0;
}

}  // namespace

bool find_code(uintptr_t address, CodePlace* place) {
  stacks::MemoryMap map(g_map, sizeof(g_map));
  uintptr_t begin = 0;  // of the file whose mappings follow each other
  for (stacks::Mapping mapping; map.next(mapping);) {
    if (mapping.offset == 0) begin = static_cast<uintptr_t>(mapping.start);
    if (address >= mapping.end) continue;
    if (address < mapping.start || mapping.inode == 0) return false;
    keep_name(mapping.path, place);
    place->offset = address - begin;
    return true;
  }
  return false;
}

}  // namespace rh::platform
