#include "platform/fake/system.h"

#include <windows.h>

#include <fcntl.h>
#include <io.h>
#include <sys/stat.h>

#include "base/bits.h"

namespace rh::fake::system {

namespace {

// Windows' calls cannot cross a border between reservations; ranges of the fake may, and are then handled granule by
// granule.
template <typename Call> bool everywhere(Range range, Call call) {
  if (call(pointer_to(range.start), range.size())) return true;
  constexpr size_t kGranule = 64 * 1024;
  while (range.size() != 0) {
    uintptr_t border = align_down(range.start, kGranule) + kGranule;
    size_t size = (border < range.end ? border : range.end) - range.start;
    if (!call(pointer_to(range.start), size)) return false;
    range.start += size;
  }
  return true;
}

}  // namespace

bool take(Range* range) {
  void* got = VirtualAlloc(pointer_to(range->start), range->size(), MEM_RESERVE, PAGE_NOACCESS);
  if (got == nullptr) return false;
  *range = {address_of(got), address_of(got) + range->size()};
  return true;
}

bool open(Range range) {
  return everywhere(
      range, [](void* start, size_t size) { return VirtualAlloc(start, size, MEM_COMMIT, PAGE_READWRITE) != nullptr; });
}

bool close(Range range) {
  return everywhere(range, [](void* start, size_t size) { return VirtualFree(start, size, MEM_DECOMMIT) != 0; });
}

bool clear(Range range) { return close(range) && open(range); }

int open_file(const char* path, bool replaces) {
  return _open(path, _O_WRONLY | _O_CREAT | (replaces ? _O_TRUNC : 0) | _O_APPEND | _O_BINARY | _O_NOINHERIT,
               _S_IREAD | _S_IWRITE);
}

std::atomic<uint32_t>* make_shared_counter() { return nullptr; }
void on_fork(void (*)(), void (*)(), void (*)()) {}  // Windows has no fork

}  // namespace rh::fake::system
