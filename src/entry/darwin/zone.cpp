#include "entry/darwin/zone.h"

#include <dlfcn.h>
#include <mach/mach_init.h>

#include <atomic>

#include "entry/darwin/census.h"
#include "entry/describe.h"
#include "entry/rules.h"
#include "heap/block.h"
#include "heap/fork.h"
#include "heap/stats.h"
#include "platform/report.h"
#include "platform/sinks.h"

namespace rh::zone {

namespace {

constinit std::atomic<bool> g_stands_first{false};

// ---- blocks -------------------------------------------------------------------------------------

// A block without bytes, as some on guarded pages are, is one all the same.
size_t as_told(size_t size) { return size != 0 ? size : 1; }

// Asked about any pointer: 0, which says that it is not ours, for all but the start of a block that is live.
size_t size_of(malloc_zone_t*, const void* pointer) {
  const BlockAt at = find_block(pointer);
  return at.is_start() && !at.is_marked() ? as_told(at.usable_size()) : 0;
}

void* allocate(malloc_zone_t*, size_t size) { return rules::allocate(size); }

void* allocate_zeroed(malloc_zone_t*, size_t count, size_t size) { return rules::allocate_zeroed(count, size); }

void* allocate_pages(malloc_zone_t*, size_t size) { return rules::allocate_aligned(platform::page_size(), size); }

// The caller is to have looked at the alignment; not all do.
void* allocate_aligned(malloc_zone_t*, size_t alignment, size_t size) {
  return is_power_of_two(alignment) ? rules::allocate_aligned(alignment, size) : nullptr;
}

void* reallocate(malloc_zone_t*, void* block, size_t size) { return rules::reallocate(block, size_for_realloc(size)); }

void free(malloc_zone_t*, void* block) { rules::free(block); }

void free_sized(malloc_zone_t*, void* block, size_t size) { rules::free_sized(block, size); }

unsigned allocate_many(malloc_zone_t*, size_t size, void** blocks, unsigned count) {
  return static_cast<unsigned>(rules::allocate_many(size, blocks, count));
}

void free_many(malloc_zone_t*, void** blocks, unsigned count) {
  for (unsigned at = 0; at < count; ++at) rules::free(blocks[at]);
}

boolean_t may_be_ours(malloc_zone_t*, void* pointer) { return in_realm(pointer); }

size_t give_back(malloc_zone_t*, size_t) { return rules::trim(); }

// It is the process's as long as there is one.
void destroy(malloc_zone_t*) {}

// ---- what tools ask -----------------------------------------------------------------------------

// Ranges on their way to whoever asked, many at a time: each telling may be a message to another process.
class Ranges {
 public:
  Ranges(task_t task, void* context, vm_range_recorder_t* record) : task_(task), context_(context), record_(record) {}
  ~Ranges() { tell(); }
  Ranges(const Ranges&) = delete;
  Ranges& operator=(const Ranges&) = delete;

  void add(void* block, size_t size) {
    ranges_[count_++] = {address_of(block), as_told(size)};
    if (count_ == kMost) tell();
  }

 private:
  static constexpr unsigned kMost = 128;

  void tell() {
    if (count_ != 0) record_(task_, context_, MALLOC_PTR_IN_USE_RANGE_TYPE, ranges_, count_);
    count_ = 0;
  }

  task_t task_;
  void* context_;
  vm_range_recorder_t* record_;
  vm_range_t ranges_[kMost];
  unsigned count_ = 0;
};

// Of another process nothing is told: all that leads to its blocks would have to be read from there.
kern_return_t enumerate(task_t task, void* context, unsigned types, vm_address_t, memory_reader_t,
                        vm_range_recorder_t* record) {
  if (task != TASK_NULL && task != mach_task_self()) return KERN_FAILURE;
  if ((types & MALLOC_PTR_IN_USE_RANGE_TYPE) == 0) return KERN_SUCCESS;
  Ranges ranges(task, context, record);
  census::each_block([](void* block, size_t size, void* to) { static_cast<Ranges*>(to)->add(block, size); }, &ranges);
  return KERN_SUCCESS;
}

size_t good_size_of(malloc_zone_t*, size_t size) { return good_size(size); }

// What is wrong ends the process where it is met, in builds that look.
boolean_t check(malloc_zone_t*) { return true; }

void print(malloc_zone_t*, boolean_t) {
  Text text(write_to_error, nullptr);
  describe::statistics(text);
  text << '\n';
}

void print_task(task_t task, unsigned, vm_address_t, memory_reader_t, print_task_printer_t) {
  if (task == TASK_NULL || task == mach_task_self()) print(nullptr, false);
}

void log(malloc_zone_t*, void*) {}

void statistics(malloc_zone_t*, malloc_statistics_t* answer) {
  stats::Figures figures;
  stats::gather(&figures);
  size_t blocks = figures.large_blocks;
  for (const stats::ClassFigures& of_class : figures.classes) blocks += of_class.in_use;
  *answer = {static_cast<unsigned>(blocks), figures.in_use, figures.arena.committed_peak, figures.arena.committed};
}

void task_statistics(task_t task, vm_address_t, memory_reader_t, malloc_statistics_t* answer) {
  *answer = {};
  if (task == TASK_NULL || task == mach_task_self()) statistics(nullptr, answer);
}

// ---- forks --------------------------------------------------------------------------------------
//
// The system's malloc calls these around every fork, for one thread at a time, after all that others have to do before
// a fork and before all that they do after it.

constinit std::atomic<bool> g_is_locked{false};

void lock(malloc_zone_t*) {
  fork::before();
  g_is_locked.store(true);
}

void unlock(malloc_zone_t*) {
  g_is_locked.store(false);
  fork::after_in_parent();
}

void begin_anew(malloc_zone_t*) {
  g_is_locked.store(false);
  fork::after_in_child();
}

boolean_t is_locked(malloc_zone_t*) { return g_is_locked.load(); }

// ---- the table ----------------------------------------------------------------------------------

// Since then malloc sets errno itself. Whoever asks for what came later sees from the number that we have none.
constexpr unsigned kVersion = 13;

malloc_introspection_t make_introspection() {
  malloc_introspection_t made = {};
  made.enumerator = enumerate;
  made.good_size = good_size_of;
  made.check = check;
  made.print = print;
  made.log = log;
  made.force_lock = lock;
  made.force_unlock = unlock;
  made.statistics = statistics;
  made.zone_locked = is_locked;
  made.reinit_lock = begin_anew;
  made.print_task = print_task;
  made.task_statistics = task_statistics;
  return made;
}

constinit malloc_introspection_t g_introspection = {};
constinit malloc_zone_t g_zone = {};

void fill_table() {
  g_introspection = make_introspection();
  g_zone.size = size_of;
  g_zone.malloc = allocate;
  g_zone.calloc = allocate_zeroed;
  g_zone.valloc = allocate_pages;
  g_zone.free = free;
  g_zone.realloc = reallocate;
  g_zone.destroy = destroy;
  g_zone.zone_name = "reheap";
  g_zone.batch_malloc = allocate_many;
  g_zone.batch_free = free_many;
  g_zone.introspect = &g_introspection;
  g_zone.version = kVersion;
  g_zone.memalign = allocate_aligned;
  g_zone.free_definite_size = free_sized;
  g_zone.pressure_relief = give_back;
  g_zone.claimed_address = may_be_ours;
}

// The table, and what it leads to, must not go with a plugin that somebody closes.
void stay_loaded() {
  Dl_info ours = {};
  if (dladdr(&g_zone, &ours) != 0 && ours.dli_fname != nullptr)
    dlopen(ours.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

malloc_zone_t* first() {
  vm_address_t* zones = nullptr;
  unsigned count = 0;
  if (malloc_get_all_zones(TASK_NULL, nullptr, &zones, &count) != KERN_SUCCESS || count == 0) return nullptr;
  return reinterpret_cast<malloc_zone_t*>(zones[0]);
}

}  // namespace

// A new zone is the last. One that is taken away leaves its place to the last: so the first goes, ours takes its place,
// and it comes back as the last. (malloc_default_zone says nothing of the first: since macOS 10.12 it is a zone that
// passes on to the first.)
void stand_first() {
  constexpr unsigned kAttempts = 8;  // others may come in between
  // It is made at first use, over the first zone, which it takes for one of the system's.
  malloc_default_purgeable_zone();
  fill_table();
  stay_loaded();
  for (unsigned attempt = 0; attempt < kAttempts; ++attempt) {
    malloc_zone_register(&g_zone);
    malloc_zone_t* before = first();
    if (before != nullptr && before != &g_zone) {
      malloc_zone_unregister(before);
      malloc_zone_register(before);
    }
    if (first() == &g_zone) return g_stands_first.store(true, std::memory_order_release);
    malloc_zone_unregister(&g_zone);
  }
  Text message;
  report(message << "other malloc zones take the first place again and again: this process keeps the system's malloc");
}

bool stands_first() { return g_stands_first.load(std::memory_order_relaxed); }

malloc_zone_t* maker_of(const void* block) { return malloc_zone_from_ptr(block); }

}  // namespace rh::zone
