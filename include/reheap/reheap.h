/* reheap: the C interface.
 *
 * Every function here works whether or not the library also serves malloc, and any thread may free
 * a block made here. Sizes are in bytes. Unless noted otherwise, functions may be called from any
 * thread, but not from a signal handler.
 *
 * Two libraries provide these names: `libreheap` also serves malloc, free and operator new;
 * `libreheap-core` leaves those to the system, so that both heaps work side by side.
 */
#ifndef REHEAP_REHEAP_H
#define REHEAP_REHEAP_H

#if defined(__cplusplus) && __cplusplus < 201103L && !defined(_MSC_VER)
#error "reheap.h is for C11, and C++11 and later: pass -std=c++11"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RH_VERSION_MAJOR 0
#define RH_VERSION_MINOR 1
#define RH_VERSION_PATCH 0

#if defined(__GNUC__)
#define RH_API __attribute__((visibility("default")))
#else
#define RH_API
#endif

/* What compilers and analysers are told of functions that allocate: RH_FRESH of memory that nothing else points to
 * yet, RH_CHECKED of a result that must be looked at, RH_BYTES and RH_BYTES_OF_MANY of its length, RH_ALIGNED of its
 * alignment (by the number of a parameter), and RH_FREED_HERE that rh_free and its like end it. GCC warns of `free`
 * then, which is wrong beside libreheap-core: use rh_free. Compilers know the length asked for: _FORTIFY_SOURCE=3 takes
 * writes beyond it for overflows where it sees both, also those that rh_usable_size or rh_expand would allow. */
#if defined(__GNUC__) || defined(__clang__)
#define RH_FRESH __attribute__((malloc))
#define RH_CHECKED __attribute__((warn_unused_result))
#define RH_BYTES(number) __attribute__((alloc_size(number)))
#define RH_BYTES_OF_MANY(count, size) __attribute__((alloc_size(count, size)))
#define RH_ALIGNED __attribute__((assume_aligned(16)))
#define RH_ALIGNED_BY(number) __attribute__((alloc_align(number)))
#else
#if defined(_MSC_VER)
#define RH_FRESH __declspec(allocator) __declspec(restrict)
#else
#define RH_FRESH
#endif
#if defined(_MSVC_LANG) && _MSVC_LANG >= 201703L
#define RH_CHECKED [[nodiscard]]
#else
#define RH_CHECKED
#endif
#define RH_BYTES(number)
#define RH_BYTES_OF_MANY(count, size)
#define RH_ALIGNED
#define RH_ALIGNED_BY(number)
#endif
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define RH_FREED_BY(function) __attribute__((malloc(function, 1)))
#else
#define RH_FREED_BY(function)
#endif
#define RH_FREED_HERE RH_FREED_BY(rh_free) RH_FREED_BY(rh_free_sized) RH_FREED_BY(rh_free_aligned_sized)

#ifdef __cplusplus
#define RH_NOTHROW noexcept
extern "C" {
#else
#define RH_NOTHROW
#endif

/* ---- blocks -------------------------------------------------------------------------------- */

/* Frees a block made by any function of this library; NULL does nothing. A pointer this library did
 * not make goes to the next allocator in line, or is reported and ends the process. */
RH_API void rh_free(void* block) RH_NOTHROW;

/* The same of a block whose size, and alignment, the caller knows: those that it was last asked for with, by the
 * function that made or resized it. The hardened build ends the process with a message for a size that is not that
 * one; otherwise neither is looked at. */
RH_API void rh_free_sized(void* block, size_t size) RH_NOTHROW;
RH_API void rh_free_aligned_sized(void* block, size_t alignment, size_t size) RH_NOTHROW;

/* A block of at least `size` bytes, aligned to 16. A size of 0 gives a unique block. Returns NULL
 * and sets errno to ENOMEM on failure; the heap stays consistent. */
RH_API RH_CHECKED RH_FRESH RH_FREED_HERE RH_BYTES(1) RH_ALIGNED void* rh_malloc(size_t size) RH_NOTHROW;

/* Like rh_malloc for `count * size` bytes, all zero. An overflowing product fails with ENOMEM.
 * Memory fresh from the OS is known to be zero and is not touched. */
RH_API RH_CHECKED RH_FRESH RH_FREED_HERE RH_BYTES_OF_MANY(1, 2) RH_ALIGNED
    void* rh_calloc(size_t count, size_t size) RH_NOTHROW;

/* Resizes the block, in place where possible. A NULL `block` allocates; size 0 frees the block and
 * returns NULL. On failure returns NULL and sets ENOMEM; the old block remains valid. */
RH_API RH_CHECKED RH_FREED_HERE RH_BYTES(2) RH_ALIGNED void* rh_realloc(void* block, size_t size) RH_NOTHROW;

/* A block at a multiple of `alignment`, a power of two up to 1 GiB (else NULL and EINVAL). */
RH_API RH_CHECKED RH_FRESH RH_FREED_HERE RH_BYTES(2)
    RH_ALIGNED_BY(1) void* rh_aligned_alloc(size_t alignment, size_t size) RH_NOTHROW;

/* Like rh_realloc, and the block lies at a multiple of `alignment` then, wherever it lay before: it moves if it has to.
 * For an alignment that rh_aligned_alloc does not take: NULL and EINVAL, and the old block remains valid. */
RH_API RH_CHECKED RH_FREED_HERE RH_BYTES(3)
    RH_ALIGNED_BY(2) void* rh_aligned_realloc(void* block, size_t alignment, size_t size) RH_NOTHROW;

/* Makes the block at least `size` bytes long where it lies. Returns its usable size then; 0, and nothing changed,
 * when it cannot, and for NULL. It never moves and never shortens, and leaves errno alone. Blocks of up to 32 KiB
 * grow within their size class, longer ones into free memory behind them. */
RH_API size_t rh_expand(void* block, size_t size) RH_NOTHROW;

/* Makes up to `count` blocks of `size` bytes, as rh_malloc does, and writes them to `blocks[0]`, `blocks[1]`, ...
 * Returns how many: fewer, and ENOMEM, when memory is short. Those made are the caller's. */
RH_API RH_CHECKED size_t rh_alloc_batch(size_t size, void** blocks, size_t count) RH_NOTHROW;

/* Frees `count` blocks, made by any functions, as rh_free does. The array stays as it is. */
RH_API void rh_free_batch(void* const* blocks, size_t count) RH_NOTHROW;

/* Usable bytes in the block: at least the requested size. 0 for NULL. */
RH_API size_t rh_usable_size(const void* block) RH_NOTHROW;

/* The least usable size a request of `size` bytes gets; a thread's first blocks of a size may be longer. Never less
 * than `size`: of one that is too large for any block it is that size, which is refused as well. */
RH_API size_t rh_good_size(size_t size) RH_NOTHROW;

/* Whether `pointer` lies in a block of this library (live or not yet reused). Never faults. */
RH_API bool rh_owns(const void* pointer) RH_NOTHROW;

/* ---- heaps --------------------------------------------------------------------------------- */

/* A separate heap. Its blocks are freed by rh_free, or all at once with the heap. */
typedef struct rh_heap rh_heap;

/* A new, empty heap. Any thread may use it; a lock serialises its operations. NULL and ENOMEM on
 * failure. */
RH_API rh_heap* rh_heap_create(void) RH_NOTHROW;

/* A heap bound to the calling thread, as fast as rh_malloc: it takes no lock. Only this thread may
 * allocate from it; any thread may free its blocks. An allocation by another thread ends the process
 * with a message, unless the thread it is bound to has ended: then it is bound to the caller from
 * there on. rh_realloc by another thread moves a block that must grow to that thread's own memory,
 * where it outlives the heap. In a forked child the heap stays bound if its thread forked, else the
 * first to allocate from it gets it. NULL and ENOMEM on failure. */
RH_API rh_heap* rh_heap_create_bound(void) RH_NOTHROW;

/* A heap over memory of the caller's: all that it has lies there, its bookkeeping too, and it asks the OS for nothing.
 * Any thread may use it; a lock serialises its operations. Only this process may use the memory meanwhile, and it must
 * stay readable and writable until the heap is destroyed; then it is the caller's again, as it is. Any alignment will
 * do. 64-bit: what is allocated is 16 bytes longer inside, and a bookkeeping of 0.5 to 2.5 KiB lies at the start.
 * NULL and EINVAL if `memory` is NULL, for a size with no room for one block, of more than 63 GiB or beyond the end of
 * the address space, and for memory that in part is another heap's or this library's own: where the library serves
 * malloc, what malloc gave is. NULL and ENOMEM when there are 1,024 such heaps, of this and the next kind. */
RH_API rh_heap* rh_heap_create_in(void* memory, size_t size) RH_NOTHROW;

/* A heap every byte of which is within reach of a signed 32-bit displacement from `code`: its `size` bytes, bookkeeping
 * included, are address space reserved no further than 2 GiB away, and committed as they are needed. rh_heap_trim and
 * rh_trim give back what is free. No block of it is executable. Any thread may use it, as the one before.
 * NULL and EINVAL if `code` is NULL, and for a size of less than one block or more than 2 GiB; NULL and ENOMEM when
 * nothing that large is free there, as far as it is looked for (at multiples of 1 MiB), when the OS or a limit refuses
 * the first memory, and when there are 1,024 such heaps. */
RH_API rh_heap* rh_heap_create_near(const void* code, size_t size) RH_NOTHROW;

/* Frees every block still in the heap, which may be used on. By any thread, but no other may be using
 * the heap or a block of it meanwhile. */
RH_API void rh_heap_reset(rh_heap* heap) RH_NOTHROW;

/* Frees every block still in the heap, and the heap. By any thread, but no other may be using either
 * meanwhile. Any later use of the heap ends the process with a message; so does a NULL heap, except
 * in rh_heap_destroy, which does nothing. */
RH_API void rh_heap_destroy(rh_heap* heap) RH_NOTHROW;

RH_API RH_CHECKED RH_FRESH RH_BYTES(2) RH_ALIGNED void* rh_heap_malloc(rh_heap* heap, size_t size) RH_NOTHROW;
RH_API RH_CHECKED RH_FRESH RH_BYTES_OF_MANY(2, 3) RH_ALIGNED
    void* rh_heap_calloc(rh_heap* heap, size_t count, size_t size) RH_NOTHROW;
RH_API RH_CHECKED RH_FRESH RH_BYTES(3)
    RH_ALIGNED_BY(2) void* rh_heap_aligned_alloc(rh_heap* heap, size_t alignment, size_t size) RH_NOTHROW;

/* Resizes a block of this heap within this heap, by a thread that may allocate from it. A block of another heap
 * ends the process. */
RH_API RH_CHECKED RH_BYTES(3) RH_ALIGNED void* rh_heap_realloc(rh_heap* heap, void* block, size_t size) RH_NOTHROW;

/* Like rh_alloc_batch, from this heap, whose lock is taken once for many blocks. */
RH_API RH_CHECKED size_t rh_heap_alloc_batch(rh_heap* heap, size_t size, void** blocks, size_t count) RH_NOTHROW;

/* The heap that the block is of which `pointer` lies in, anywhere; NULL for memory of no such heap. A block that was
 * freed and not reused may still count, and of a heap of rh_heap_create_in or rh_heap_create_near all of its memory
 * does. Never faults, unless the heap is being destroyed meanwhile. */
RH_API rh_heap* rh_heap_of(const void* pointer) RH_NOTHROW;

/* Has the heap give up what of it is free: others may use it then, and it goes back to the OS in its time, or by
 * rh_trim at once. Of a heap bound to another living thread what that one keeps at hand stays. Returns how many bytes
 * less the heap holds; of one of rh_heap_create_near, how many went back to the OS; of one of rh_heap_create_in, 0. */
RH_API size_t rh_heap_trim(rh_heap* heap) RH_NOTHROW;

/* Calls `visit` for each block in use, with its usable size, in the order of their addresses, until it returns false.
 * Returns true when none are left. False, and errno EPERM, for a heap that is bound to another living thread: nobody
 * else can tell which of its blocks are in use.
 *
 * No lock is held while `visit` runs: it may use this library, and free the block it is given; but nobody may destroy
 * the heap before the walk ends. Other threads may allocate and free meanwhile. Each block that is in use from before
 * the walk until after it is visited, once; one that is made or freed meanwhile may be or not, so that where others
 * free, a block may be gone when `visit` looks at it. */
typedef bool (*rh_visit_fn)(void* block, size_t usable_size, void* context);
RH_API bool rh_heap_walk(rh_heap* heap, rh_visit_fn visit, void* context) RH_NOTHROW;

/* Limits what the heap holds, in bytes: its slabs (16 KiB and more each) and its large blocks; of a heap of
 * rh_heap_create_in or rh_heap_create_near its blocks, with 16 bytes beside each. What would lead beyond
 * `hard` is refused: NULL and ENOMEM. 0, as at first, is no limit. What is held already may be more. */
RH_API void rh_heap_limit(rh_heap* heap, size_t hard) RH_NOTHROW;

typedef struct rh_heap_stats {
  size_t struct_size; /* set by the caller to sizeof(rh_heap_stats) */
  size_t in_use;      /* in blocks handed out, at usable sizes; those kept at hand for the next requests count */
  size_t blocks;
  size_t held; /* in slabs and large blocks; or in blocks, as rh_heap_limit says */
  size_t held_peak;
  size_t limit;   /* 0: none */
  size_t refused; /* requests that the limit refused */
} rh_heap_stats;

/* Fills `*stats` up to its struct_size. False if struct_size was not set. */
RH_API bool rh_heap_stats_get(rh_heap* heap, rh_heap_stats* stats) RH_NOTHROW;

/* ---- tags ---------------------------------------------------------------------------------- */

/* A name for what is allocated while it is in force in the thread, so that it can be seen who holds how
 * much (docs/tags.md). 0: untagged. */
typedef unsigned rh_tag;

/* The tag of that name, which is copied: the same for the same name, and never gone. 0 and ENOMEM when there
 * are 255 already; 0 and EINVAL for a name that is null, empty or longer than 63 bytes. */
RH_API rh_tag rh_tag_create(const char* name) RH_NOTHROW;

/* From now on all that the calling thread allocates by malloc, operator new and rh_malloc is of that tag,
 * until rh_tag_pop brings back what was in force before. They nest; 0 may be pushed too. False when the tag
 * could not be brought into force, because there is no memory, no such tag, or because 48 that changed it are
 * pushed: then what was in force still is. Each push has its pop, also one that gave false. */
RH_API bool rh_tag_push(rh_tag tag) RH_NOTHROW;

/* Without a push before it does nothing. */
RH_API void rh_tag_pop(void) RH_NOTHROW;

/* The tag in force in the calling thread. */
RH_API rh_tag rh_tag_current(void) RH_NOTHROW;

/* Limits what the tag holds, as rh_heap_limit does. False and EINVAL if there is no such tag, and for 0. */
RH_API bool rh_tag_limit(rh_tag tag, size_t hard) RH_NOTHROW;

typedef struct rh_tag_stats {
  size_t struct_size; /* set by the caller to sizeof(rh_tag_stats) */
  const char* name;   /* stays */
  size_t in_use;      /* in blocks handed out, at usable sizes, threads' bins included */
  size_t blocks;
  size_t held;      /* in slabs and large blocks */
  size_t held_peak; /* 0 where untagged, as the next two */
  size_t limit;     /* 0: none */
  size_t refused;   /* requests that the limit refused */
} rh_tag_stats;

/* Fills `stats[0]`, `stats[1]`, ... for up to `count` tags, from `first` on; 0 is what is untagged. Gives how
 * many there were. All are from one look, so that in_use adds up to that of rh_stats. Only `stats[0]` needs its
 * struct_size set; 0 is returned if it was not. */
RH_API size_t rh_tag_stats_get(rh_tag first, rh_tag_stats* stats, size_t count) RH_NOTHROW;

/* ---- memory held --------------------------------------------------------------------------- */

/* Returns free and unused memory to the OS at once, from every thread heap at rest. Returns the
 * number of bytes. */
RH_API size_t rh_trim(void) RH_NOTHROW;

/* Limits what the library holds, in bytes; 0 is no limit. Beyond `soft` what is free goes back to the
 * OS at once and memory is taken in small steps; what would lead beyond `hard` is refused, as when the
 * OS has none. Takes the place of the option `limit`, but for its `end`. False and EINVAL, and nothing
 * changed, for a limit of less than 1 MiB and a soft limit above the hard one. What is held already may
 * be more: then nothing is taken until it is less. */
RH_API bool rh_limit_set(size_t soft, size_t hard) RH_NOTHROW;

typedef struct rh_limit {
  size_t struct_size; /* set by the caller to sizeof(rh_limit) */
  size_t soft;        /* in force now, whoever set it; 0: none */
  size_t hard;
  size_t held;     /* what counts: in use, free and not given back, and for descriptors and heaps */
  size_t soft_met; /* how often more than the soft limit came to be held */
  size_t hard_met; /* requests refused by the hard one */
} rh_limit;

/* Fills `*limit` up to its struct_size. False if struct_size was not set. */
RH_API bool rh_limit_get(rh_limit* limit) RH_NOTHROW;

/* From now on `call` is called when more than the soft limit is held even after all that was free went
 * back; again when as much as a thirty-second part of the limit (1 MiB at least, 64 MiB at most) has
 * been added, or it was less in between. By the thread whose request led there, or that set the limit,
 * before that call returns; by one thread at a time, with no lock held: it may use this library, and
 * free what can be done without. It must return. Returns the one before; NULL, the default, is none. */
typedef void (*rh_limit_fn)(size_t held, size_t soft);
RH_API rh_limit_fn rh_limit_notify(rh_limit_fn call) RH_NOTHROW;

/* What the library holds, in bytes. Gathered on request: costs the fast paths nothing. */
typedef struct rh_stats {
  size_t struct_size; /* set by the caller to sizeof(rh_stats) */
  size_t reserved;    /* address space reserved */
  size_t committed;   /* address space committed */
  size_t committed_peak;
  size_t in_use;       /* in blocks handed out, at usable sizes, threads' bins included */
  size_t spans_in_use; /* in slabs and large blocks */
  size_t spans_in_use_peak;
  size_t free_dirty;     /* free, probably resident, to be reused or returned */
  size_t metadata;       /* touched for descriptors and heaps */
  size_t returned;       /* returned to the OS since the start */
  size_t heaps;          /* thread heaps, including idle ones */
  size_t remote_frees;   /* blocks freed by a thread that did not own them */
  size_t remote_batches; /* messages that carried them */
  size_t slow_paths;     /* refills of a thread's free list */
  size_t os_calls;       /* of all kinds; by kind in the JSON */
} rh_stats;

/* Fills `*stats` up to its struct_size. False if struct_size was not set. */
RH_API bool rh_stats_get(rh_stats* stats) RH_NOTHROW;

/* Writes the statistics as one JSON object through `write(text, length, context)`, in pieces.
 * Allocates nothing. */
typedef void (*rh_write_fn)(const char* text, size_t length, void* context);
RH_API void rh_stats_json(rh_write_fn write, void* context) RH_NOTHROW;

/* Writes who serves malloc here, version, build, options in force and realm, as one JSON object. */
RH_API void rh_report_json(rh_write_fn write, void* context) RH_NOTHROW;

/* ---- options ------------------------------------------------------------------------------- */

/* Sets an option by its name without the REHEAP_ prefix, in lower case ("decay_ms"), to the text that
 * the environment would have. False, with a line on stderr, when the name or value is unknown or the
 * option can no longer change. docs/options.md lists all options. */
RH_API bool rh_option_set(const char* name, const char* value) RH_NOTHROW;

/* ---- profiles ------------------------------------------------------------------------------ */

/* Begins a profile: from now on the stacks are noted that allocate, how much of it is live, and for
 * how long, estimated from few blocks (docs/profiles.md). An earlier one is forgotten, and blocks
 * that there are already are not in it. One byte in `every_bytes` is sampled on average; 0: as the
 * option profile_rate says. False in the hardened build, and for more than 1 TiB. */
RH_API bool rh_profile_start(uint64_t every_bytes) RH_NOTHROW;

/* No more blocks are sampled. That those are freed which were is still noted. */
RH_API void rh_profile_stop(void) RH_NOTHROW;

/* Replaces a file by the profile so far, as pprof reads it; %p in `path` becomes the process's id.
 * NULL: the file that the option profile names. False, with a line on stderr, when it cannot. The
 * profile goes on. Allocates nothing. */
RH_API bool rh_profile_write(const char* path) RH_NOTHROW;

/* "0.1.0" */
RH_API const char* rh_version(void) RH_NOTHROW;

#ifdef __cplusplus
}

namespace reheap {

/* A tag in force from here to the end of the scope. */
class TagScope {
 public:
  explicit TagScope(rh_tag tag) noexcept { rh_tag_push(tag); }
  ~TagScope() { rh_tag_pop(); }
  TagScope(const TagScope&) = delete;
  TagScope& operator=(const TagScope&) = delete;
};

} /* namespace reheap */
#endif
#endif
