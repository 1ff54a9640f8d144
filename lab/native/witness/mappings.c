/* Stands before the C library's mmap and its like, and notes who calls them.
 *
 * It makes no system call of its own, for a program may have forbidden them; takes no lock that a signal handler or a
 * child could find held for ever; allocates nothing; and needs no constructor, for allocators map memory before any
 * runs. What it cannot note (too many mappings, or a lock that is not given back in time) it leaves out. */
#undef _FILE_OFFSET_BITS /* mmap and mmap64 are two functions here */
#include "witness/mappings.h"

#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "witness/symbols.h"

enum { kPatience = 100000 }; /* looks at the lock before one gives up */

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

static ReheapMapping mappings[REHEAP_MOST_MAPPINGS];
static ReheapMappings book = {REHEAP_MAPPINGS_MAGIC, 0, 0, (uint64_t)(uintptr_t)mappings};

/* ---- the book ---------------------------------------------------------------------------------- */

/* Odd is locked. A handler that interrupts the holder, and a child forked meanwhile, give up. */
static int lock(void) {
  for (int look = 0; look < kPatience; look++) {
    uint64_t version = __atomic_load_n(&book.version, __ATOMIC_RELAXED);
    if (version % 2 == 0 &&
        __atomic_compare_exchange_n(&book.version, &version, version + 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      return 1;
  }
  return 0;
}

static void unlock(void) { __atomic_add_fetch(&book.version, 1, __ATOMIC_RELEASE); }

/* The place of the first that ends behind there. */
static size_t first_behind(uint64_t address) {
  size_t low = 0, high = book.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (mappings[middle].end > address)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static int put(size_t place, ReheapMapping one) {
  if (book.count == REHEAP_MOST_MAPPINGS) return 0;
  memmove(mappings + place + 1, mappings + place, (book.count - place) * sizeof *mappings);
  mappings[place] = one;
  book.count++;
  return 1;
}

static void take_out(size_t from, size_t to) {
  memmove(mappings + from, mappings + to, (book.count - to) * sizeof *mappings);
  book.count -= to - from;
}

static void erase(uint64_t start, uint64_t end) {
  size_t from = first_behind(start);
  if (from < book.count && mappings[from].start < start) {
    ReheapMapping rest = {end, mappings[from].end, mappings[from].caller};
    mappings[from].end = start;
    from++;
    if (rest.end > end) {
      put(from, rest);
      return;
    }
  }
  size_t to = from;
  while (to < book.count && mappings[to].end <= end) to++;
  if (to < book.count && mappings[to].start < end) mappings[to].start = end;
  take_out(from, to);
}

static void insert(ReheapMapping one) {
  size_t place = first_behind(one.start);
  if (place > 0 && mappings[place - 1].end == one.start && mappings[place - 1].caller == one.caller)
    mappings[place - 1].end = one.end;
  else
    put(place, one);
}

/* Whether there was anything. */
static int forget(const void* start, size_t size) {
  if (!size || !lock()) return 0;
  size_t place = first_behind((uintptr_t)start);
  int known = place < book.count && mappings[place].start < (uintptr_t)start + size;
  if (known) erase((uintptr_t)start, (uintptr_t)start + size);
  unlock();
  return known;
}

static void note(const void* start, size_t size, const void* caller) {
  ReheapMapping one = {(uintptr_t)start, (uintptr_t)start + size, (uintptr_t)caller};
  if (!size || !lock()) return;
  erase(one.start, one.end);
  insert(one);
  unlock();
}

/* ---- the calls --------------------------------------------------------------------------------- */

/* Whose turn it would be without us. The loader is not asked, for its answer may take its lock. */
static void* next(const char* name) {
  const struct link_map* object = _r_debug.r_map;
  while (object && object->l_ld != _DYNAMIC) object = object->l_next;
  void* found = NULL;
  while (object && !found && (object = object->l_next)) found = function_of(object, name);
  return found;
}

/* The function itself once it is known. Two threads that ask at once get the same answer. */
#define NEXT(name)                                                                               \
  ({                                                                                             \
    static __typeof__(name)* next_one;                                                           \
    __typeof__(name)* it = __atomic_load_n(&next_one, __ATOMIC_RELAXED);                         \
    if (!it) __atomic_store_n(&next_one, it = (__typeof__(name)*)next(#name), __ATOMIC_RELAXED); \
    it;                                                                                          \
  })

#define CALLER __builtin_return_address(0)

static size_t whole_pages(size_t size) {
  size_t page = (size_t)getpagesize();
  return (size + page - 1) / page * page;
}

static void* noted(void* mapped, size_t size, int flags, const void* caller) {
  if (mapped == MAP_FAILED) return mapped;
  if (flags & MAP_ANONYMOUS)
    note(mapped, whole_pages(size), caller);
  else
    forget(mapped, whole_pages(size));
  return mapped;
}

static void* no_such_function(void) {
  errno = ENOSYS;
  return MAP_FAILED;
}

#pragma GCC visibility push(default)

void* mmap(void* address, size_t size, int protection, int flags, int file, off_t offset) {
  if (!NEXT(mmap)) return no_such_function();
  return noted(NEXT(mmap)(address, size, protection, flags, file, offset), size, flags, CALLER);
}

void* mmap64(void* address, size_t size, int protection, int flags, int file, off64_t offset) {
  if (!NEXT(mmap64)) return no_such_function();
  return noted(NEXT(mmap64)(address, size, protection, flags, file, offset), size, flags, CALLER);
}

/* Forgotten before it is done: afterwards it may be another thread's already. */
int munmap(void* address, size_t size) {
  if (!NEXT(munmap)) {
    errno = ENOSYS;
    return -1;
  }
  forget(address, whole_pages(size));
  return NEXT(munmap)(address, size);
}

void* mremap(void* address, size_t size, size_t new_size, int flags, ...) {
  va_list more;
  va_start(more, flags);
  void* wanted = flags & MREMAP_FIXED ? va_arg(more, void*) : NULL;
  va_end(more);
  if (!NEXT(mremap)) return no_such_function();
  int noted_before = forget(address, whole_pages(size));
  void* mapped = NEXT(mremap)(address, size, new_size, flags, wanted);
  if (noted_before && (mapped == MAP_FAILED || flags & MREMAP_DONTUNMAP)) note(address, whole_pages(size), CALLER);
  if (noted_before && mapped != MAP_FAILED) note(mapped, whole_pages(new_size), CALLER);
  return mapped;
}

void* sbrk(intptr_t increment) {
  if (!NEXT(sbrk)) return no_such_function();
  char* before = NEXT(sbrk)(increment);
  if (before == MAP_FAILED || increment == 0) return before;
  if (increment > 0)
    note(before, (size_t)increment, CALLER);
  else
    forget(before + increment, (size_t)-increment);
  return before;
}

#pragma GCC visibility pop
