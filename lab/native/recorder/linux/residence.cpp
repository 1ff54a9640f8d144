#include "linux/residence.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

namespace recorder {
namespace {

constexpr size_t kPagesAtOnce = 2048;

int64_t resident_pages(uintptr_t from, size_t pages, size_t page) {
  unsigned char state[kPagesAtOnce];
  if (mincore(reinterpret_cast<void*>(from), pages * page, state) != 0) return -1;
  int64_t resident = 0;
  for (size_t i = 0; i != pages; ++i) resident += state[i] & 1;
  return resident;
}

}  // namespace

int64_t resident_kib(const void* block, size_t bytes) {
  int error = errno;
  auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  uintptr_t from = reinterpret_cast<uintptr_t>(block) & ~(page - 1);
  uintptr_t end = (reinterpret_cast<uintptr_t>(block) + bytes + page - 1) & ~(page - 1);
  int64_t sum = 0;
  while (from < end && sum >= 0) {
    size_t pages = (end - from) / page < kPagesAtOnce ? (end - from) / page : kPagesAtOnce;
    int64_t here = resident_pages(from, pages, page);
    sum = here < 0 ? -1 : sum + here;
    from += pages * page;
  }
  errno = error;
  return sum < 0 ? -1 : sum * static_cast<int64_t>(page / 1024);
}

}  // namespace recorder
