#include "platform/fake/system.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "platform/platform.h"

namespace rh::fake::system {

namespace {

bool map(Range* range, int flags) {
  void* got = mmap(pointer_to(range->start), range->size(), PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  if (got == MAP_FAILED) return false;
  *range = {address_of(got), address_of(got) + range->size()};
  return true;
}

}  // namespace

bool take(Range* range) { return map(range, range->start != 0 ? MAP_FIXED_NOREPLACE : 0); }

bool open(Range range) { return mprotect(pointer_to(range.start), range.size(), PROT_READ | PROT_WRITE) == 0; }

bool clear(Range range) { return madvise(pointer_to(range.start), range.size(), MADV_DONTNEED) == 0; }

bool close(Range range) { return map(&range, MAP_FIXED); }

int open_file(const char* path, bool replaces) {
  return ::open(path, O_WRONLY | O_CREAT | (replaces ? O_TRUNC : 0) | O_APPEND | O_CLOEXEC, 0644);
}

std::atomic<uint32_t>* make_shared_counter() {
  void* got = mmap(nullptr, platform::kPageSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return got == MAP_FAILED ? nullptr : static_cast<std::atomic<uint32_t>*>(got);
}

void on_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) { pthread_atfork(before, in_parent, in_child); }

}  // namespace rh::fake::system
