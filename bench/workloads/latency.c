/* How long each single malloc and free takes, under load.
 *
 *   latency THREADS CALLS
 *
 * THREADS workers make CALLS timed calls together. Sizes are 16 bytes to 64 KiB, small ones most often, a few up to
 * 1 MiB. Each worker's set of blocks grows, stays, shrinks and stays small, in cycles, so that memory is given back
 * while others work; some blocks go to other threads, who free them. Beside them short-lived threads come and go.
 *
 * Calls that the kernel disturbed are told apart: of every call that lasts longer than the quickest page fault could,
 * the thread's counters of faults and switches are read afterwards, and again after everything between two calls that
 * lasts so long; shorter calls and gaps cannot hold a fault or a switch, so what changed belongs to the call. An
 * interrupt without a switch, and a host that takes the processor away, are in no counter: they count as the
 * allocator's. A wait (a voluntary switch) is the allocator's own and disturbs nothing.
 *
 * Prints JSON: histograms as pairs of the least nanoseconds of a bucket and its calls. The clock's own time is
 * subtracted. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ticks.h"
#include "workload.h"

enum { SLOTS = 16384, REST = SLOTS / 16, CYCLE = 8000000, EIGHTH = CYCLE / 8, MAILBOX = 1024, HAND_OVER_EVERY = 16 };
enum { VISIT_CALLS = 2000, VISIT_SLOTS = 500, NAP_US = 1000, CALIBRATIONS = 20000, FAULTS = 500, LONG_NS = 100000 };
enum { MALLOC, FREE, CALL_KINDS };
enum { NOTHING, WAITED, SWITCHED, FAULTED, CAUSES };

static const char* const call_names[] = {"malloc", "free"};
static const char* const cause_names[] = {"nothing", "waited", "switched", "faulted"};

/* Of one kind of call: all, and those that the kernel disturbed; and the long ones by what happened in them. */
typedef struct {
  Histogram all, disturbed;
  uint64_t undisturbed_longest, longer[CAUSES];
} Calls;

typedef struct {
  Calls calls[CALL_KINDS];
  struct rusage seen;
  uint64_t last_end;
  Random random;
  Marked* live[SLOTS];
  size_t count;
} Worker;

static _Atomic(Marked*) mailbox[MAILBOX];
static Worker workers[MOST_THREADS + 1]; /* the last one's are the visitors', one at a time */
static int threads;
static size_t calls_each;
static atomic_bool finished;
static uint64_t clock_ticks, suspect_ticks, long_ticks;
static double tick_ns;

/* ---- telling a disturbance --------------------------------------------------------------------- */

static struct rusage counters(void) {
  struct rusage now;
  getrusage(RUSAGE_THREAD, &now);
  return now;
}

/* What happened since the last reading. */
static int cause_since(struct rusage* seen) {
  struct rusage before = *seen;
  *seen = counters();
  if (seen->ru_minflt + seen->ru_majflt != before.ru_minflt + before.ru_majflt) return FAULTED;
  if (seen->ru_nivcsw != before.ru_nivcsw) return SWITCHED;
  return seen->ru_nvcsw != before.ru_nvcsw ? WAITED : NOTHING;
}

static uint64_t begin_call(Worker* worker) {
  uint64_t start = ticks_before();
  if (start - worker->last_end < suspect_ticks) return start;
  worker->seen = counters();
  return ticks_before();
}

static void note_undisturbed(Calls* calls, uint64_t ticks) {
  if (ticks > calls->undisturbed_longest) calls->undisturbed_longest = ticks;
}

static void note_suspect(Worker* worker, Calls* calls, uint64_t ticks) {
  int cause = cause_since(&worker->seen);
  if (ticks > long_ticks) calls->longer[cause]++;
  if (cause == SWITCHED || cause == FAULTED)
    count_value(&calls->disturbed, ticks);
  else
    note_undisturbed(calls, ticks);
}

static void end_call(Worker* worker, int kind, uint64_t start) {
  uint64_t end = ticks_after();
  uint64_t ticks = end - start > clock_ticks ? end - start - clock_ticks : 0;
  Calls* calls = &worker->calls[kind];
  count_value(&calls->all, ticks);
  if (ticks < suspect_ticks)
    note_undisturbed(calls, ticks);
  else
    note_suspect(worker, calls, ticks);
  worker->last_end = ticks_after();
}

/* ---- the load ---------------------------------------------------------------------------------- */

static Marked* timed_malloc(Worker* worker, size_t size) {
  uint64_t start = begin_call(worker);
  void* bytes = malloc(size);
  end_call(worker, MALLOC, start);
  return mark(must(bytes), size);
}

static void timed_free(Worker* worker, Marked* block) {
  unmark(block);
  uint64_t start = begin_call(worker);
  free(block);
  end_call(worker, FREE, start);
}

static size_t any_size(Random* random) {
  size_t dice = below(random, 1000);
  if (dice == 0) return skewed_size(random, 17, 20);
  return dice < 50 ? skewed_size(random, 11, 16) : skewed_size(random, 4, 10);
}

/* How many blocks the worker should have: the cycle grows, stays, shrinks and rests, by eighths 2, 2, 1 and 3. */
static size_t wanted(size_t made) {
  size_t at = made % CYCLE;
  size_t more = SLOTS - REST;
  if (at < 2 * EIGHTH) return REST + more * at / (2 * EIGHTH);
  if (at < 4 * EIGHTH) return SLOTS;
  if (at < 5 * EIGHTH) return REST + more * (5 * EIGHTH - at) / EIGHTH;
  return REST;
}

static Marked* pick(Worker* worker) {
  size_t at = below(&worker->random, worker->count);
  Marked* block = worker->live[at];
  worker->live[at] = worker->live[--worker->count];
  return block;
}

/* One timed call, or none if an empty place of the mailbox took the block. */
static size_t step(Worker* worker, size_t most) {
  if (worker->count < most) {
    worker->live[worker->count++] = timed_malloc(worker, any_size(&worker->random));
    return 1;
  }
  Marked* block = pick(worker);
  if (below(&worker->random, HAND_OVER_EVERY) == 0)
    block = atomic_exchange(&mailbox[below(&worker->random, MAILBOX)], block);
  if (!block) return 0;
  timed_free(worker, block);
  return 1;
}

static void free_rest(Worker* worker) {
  while (worker->count) free_marked(worker->live[--worker->count]);
}

static void begin(Worker* worker, unsigned seed) {
  worker->random = random_for(seed);
  worker->seen = counters();
  worker->last_end = ticks_after();
}

static void* work(void* argument) {
  unsigned number = (unsigned)(intptr_t)argument;
  Worker* worker = &workers[number];
  begin(worker, number);
  for (size_t made = 0; made < calls_each;) made += step(worker, wanted(made));
  free_rest(worker);
  return NULL;
}

static void* visit(void* argument) {
  Worker* worker = &workers[MOST_THREADS];
  begin(worker, (unsigned)(intptr_t)argument);
  for (size_t made = 0; made < VISIT_CALLS;) made += step(worker, made % VISIT_SLOTS + 1);
  free_rest(worker);
  return NULL;
}

static void* receive_visitors(void* argument) {
  (void)argument;
  for (unsigned number = MOST_THREADS; !finished; number++) {
    pthread_join(start_thread(visit, (void*)(intptr_t)number), NULL);
    usleep(NAP_US);
  }
  return NULL;
}

/* ---- calibration ------------------------------------------------------------------------------- */

/* What two readings with nothing between them take, most often. */
static uint64_t cost_of_the_clock(void) {
  static Histogram seen;
  for (int i = 0; i < CALIBRATIONS; i++) {
    uint64_t start = ticks_before();
    count_value(&seen, ticks_after() - start);
  }
  uint64_t passed = 0;
  unsigned bucket = 0;
  while ((passed += seen.counts[bucket]) < CALIBRATIONS / 2) bucket++;
  return bucket_start(bucket);
}

/* The quickest first touch of a page. */
static uint64_t quickest_fault(void) {
  size_t size = (size_t)FAULTS * PAGE;
  volatile char* pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(pages == MAP_FAILED ? NULL : (void*)pages);
  madvise((void*)pages, size, MADV_NOHUGEPAGE);
  uint64_t least = UINT64_MAX;
  for (size_t at = 0; at < size; at += PAGE) {
    uint64_t start = ticks_before();
    pages[at] = 1;
    uint64_t took = ticks_after() - start;
    if (took < least) least = took;
  }
  munmap((void*)pages, size);
  return least;
}

static void calibrate(void) {
  uint64_t ns = now_ns(), ticks = ticks_before();
  usleep(50000);
  tick_ns = (double)(now_ns() - ns) / (double)(ticks_after() - ticks);
  clock_ticks = cost_of_the_clock();
  suspect_ticks = quickest_fault() * 3 / 4;
  long_ticks = (uint64_t)(LONG_NS / tick_ns);
}

/* ---- printing ---------------------------------------------------------------------------------- */

static double ns_of(uint64_t ticks) { return (double)ticks * tick_ns; }

static void print_histogram(const char* name, const Histogram* histogram, const Histogram* without, uint64_t longest) {
  printf("\"%s\": {\"longest_ns\": %.0f, \"buckets\": [", name, ns_of(longest));
  const char* comma = "";
  for (unsigned i = 0; i < BUCKETS; i++) {
    uint64_t count = histogram->counts[i] - (without ? without->counts[i] : 0);
    if (count == 0) continue;
    printf("%s[%.1f, %llu]", comma, ns_of(bucket_start(i)), (unsigned long long)count);
    comma = ", ";
  }
  printf("]}");
}

static void print_calls(const char* name, const Calls* calls) {
  printf(", \"%s\": {", name);
  print_histogram("all", &calls->all, NULL, calls->all.longest);
  printf(", ");
  print_histogram("undisturbed", &calls->all, &calls->disturbed, calls->undisturbed_longest);
  printf(", \"longer\": {");
  for (int i = 0; i < CAUSES; i++)
    printf("%s\"%s\": %llu", i ? ", " : "", cause_names[i], (unsigned long long)calls->longer[i]);
  printf("}}");
}

static void add_calls(Calls* sum, const Calls* other) {
  add_histogram(&sum->all, &other->all);
  add_histogram(&sum->disturbed, &other->disturbed);
  for (int i = 0; i < CAUSES; i++) sum->longer[i] += other->longer[i];
  note_undisturbed(sum, other->undisturbed_longest);
}

static void print_results(void) {
  static Calls sums[CALL_KINDS];
  for (int i = 0; i <= MOST_THREADS; i++)
    for (int kind = 0; kind < CALL_KINDS; kind++) add_calls(&sums[kind], &workers[i].calls[kind]);
  printf("{\"clock_ns\": %.1f, \"suspect_ns\": %.0f, \"long_ns\": %d", ns_of(clock_ticks), ns_of(suspect_ticks),
         LONG_NS);
  for (int kind = 0; kind < CALL_KINDS; kind++) print_calls(call_names[kind], &sums[kind]);
  printf("}\n");
}

int main(int argc, char** argv) {
  threads = argc == 3 ? atoi(argv[1]) : 0;
  long long calls = argc == 3 ? atoll(argv[2]) : 0;
  if (threads < 1 || threads > MOST_THREADS || calls < threads) {
    fprintf(stderr, "usage: latency THREADS (1 to %d) CALLS\n", MOST_THREADS);
    return 2;
  }
  calls_each = (size_t)calls / (size_t)threads;
  calibrate();
  pthread_t visitors = start_thread(receive_visitors, NULL);
  run_threads(threads, work);
  finished = 1;
  pthread_join(visitors, NULL);
  print_results();
  return 0;
}
