// reheap-replay: does again what a recorded program asked of its allocator, under whatever allocator serves this
// process.
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <getopt.h>
#include <new>

#include "replay/samples.h"
#include "replay/stream.h"
#include "replay/workload.h"
#include "trace/crc32c.h"

namespace lab {
namespace {

constexpr int kExitUsage = 2;
constexpr int kExitErrors = 1;  // the allocator, or the replay, did something wrong
constexpr int kExitFailed = 125;

constexpr char kUsage[] = "usage: reheap-replay COMPILED --out FILE [--pace full|recorded] [--order program|strict]\n"
                          "                     [--touch recorded|whole|ends] [--threads N] [--sample-ms N]\n"
                          "COMPILED is made by `reheap-trace compile`. Results are written to FILE as JSON.\n"
                          "--threads N runs N copies of the recorded program at once.\n"
                          "Exit status: 0; 1 when contents were damaged, an allocation failed or an order was broken;\n"
                          "2 for wrong arguments; 125 when the replay could not be done.\n";

[[noreturn]] void fail(int status, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::fputs("reheap-replay: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  std::exit(status);
}

struct Options {
  const char* file = nullptr;
  const char* out = nullptr;
  Settings settings;
  unsigned copies = 1;
  unsigned sample_ms = 10;
};

unsigned number(const char* name, const char* text, unsigned least, unsigned most) {
  char* end;
  errno = 0;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (errno != 0 || end == text || *end != 0 || value < least || value > most)
    fail(kExitUsage, "--%s takes a number from %u to %u, not '%s'", name, least, most, text);
  return static_cast<unsigned>(value);
}

Touch touch_named(const char* name) {
  if (std::strcmp(name, "recorded") == 0) return Touch::kRecorded;
  if (std::strcmp(name, "whole") == 0) return Touch::kWhole;
  if (std::strcmp(name, "ends") == 0) return Touch::kEnds;
  fail(kExitUsage, "--touch is recorded, whole or ends, not '%s'", name);
}

bool strict_order(const char* name) {
  if (std::strcmp(name, "strict") == 0) return true;
  if (std::strcmp(name, "program") == 0) return false;
  fail(kExitUsage, "--order is program or strict, not '%s'", name);
}

bool recorded_pace(const char* name) {
  if (std::strcmp(name, "recorded") == 0) return true;
  if (std::strcmp(name, "full") == 0) return false;
  fail(kExitUsage, "--pace is full or recorded, not '%s'", name);
}

[[noreturn]] void end_with(const char* text, std::FILE* to, int status) {
  std::fputs(text, to);
  if (std::fflush(to) != 0) fail(kExitFailed, "standard output could not be written whole");
  std::exit(status);
}

void take(Options& options, int letter, const char* value) {
  if (letter == 'o')
    options.out = value;
  else if (letter == 'p')
    options.settings.recorded_pace = recorded_pace(value);
  else if (letter == 'r')
    options.settings.strict = strict_order(value);
  else if (letter == 't')
    options.settings.touch = touch_named(value);
  else if (letter == 'n')
    options.copies = number("threads", value, 1, 1024);
  else if (letter == 's')
    options.sample_ms = number("sample-ms", value, 1, 60'000);
  else if (letter == 'h')
    end_with(kUsage, stdout, 0);
  else if (letter == 'V')
    end_with("reheap-replay " REHEAP_LAB_VERSION "\n", stdout, 0);
  else
    end_with(kUsage, stderr, kExitUsage);
}

Options parse(int count, char** arguments) {
  static const option known[] = {{"out", required_argument, nullptr, 'o'},
                                 {"pace", required_argument, nullptr, 'p'},
                                 {"order", required_argument, nullptr, 'r'},
                                 {"touch", required_argument, nullptr, 't'},
                                 {"threads", required_argument, nullptr, 'n'},
                                 {"sample-ms", required_argument, nullptr, 's'},
                                 {"help", no_argument, nullptr, 'h'},
                                 {"version", no_argument, nullptr, 'V'},
                                 {nullptr, 0, nullptr, 0}};
  Options options;
  for (int letter; (letter = getopt_long(count, arguments, "o:", known, nullptr)) != -1;) take(options, letter, optarg);
  if (optind + 1 != count || !options.out) end_with(kUsage, stderr, kExitUsage);
  options.file = arguments[optind];
  return options;
}

// ---- the compiled trace -----------------------------------------------------------------------

struct Compiled {
  sys::File file;
  compiled::Header header;
  compiled::Thread* threads;
};

Compiled load(const char* path, Ledger& ledger) {
  Compiled trace;
  compiled::Header& header = trace.header;
  if (!sys::open_file(path, trace.file)) fail(kExitFailed, "%s cannot be opened", path);
  const std::int64_t got = sys::read_at(trace.file, &header, sizeof header, 0);
  if (got != sizeof header || std::memcmp(header.magic, compiled::kMagic, sizeof header.magic) != 0)
    fail(kExitFailed, "%s is no compiled trace: make one with `reheap-trace compile`", path);
  if (header.version != compiled::kVersion)
    fail(kExitFailed, "%s has version %u; this program reads %u: compile the trace again", path, header.version,
         compiled::kVersion);
  const std::size_t bytes = header.threads * sizeof(compiled::Thread);
  trace.threads = static_cast<compiled::Thread*>(sys::map(bytes + 1));
  ledger.add_own(bytes);
  const bool whole =
      sys::read_at(trace.file, trace.threads, bytes, header.thread_table) == static_cast<std::int64_t>(bytes);
  const std::uint32_t checksum = header.checksum;
  if (!whole ||
      checksum != trace::crc32c(trace.threads, bytes, trace::crc32c(&header, offsetof(compiled::Header, checksum))))
    fail(kExitFailed, "%s is damaged or cut short: compile the trace again", path);
  return trace;
}

// Reads everything without doing it. Returns the processor time that takes, in ns.
std::uint64_t read_all(const Compiled& trace, const char* path, bool verify_checksums) {
  auto* window = static_cast<std::uint8_t*>(sys::map(compiled::kChunkBytes));
  const std::uint64_t begin = sys::cpu_ns();
  for (std::uint64_t i = 0; i < trace.header.threads; ++i) {
    Stream stream(trace.file, trace.threads[i].first_chunk, window);
    stream.verify_checksums = verify_checksums;
    Operation operation{};
    bool good;
    while ((good = stream.next(operation)) && operation.kind != compiled::Kind::kEnd) {
      good = operation.kind < compiled::Kind::kMalloc || operation.slot < trace.header.slots;
      if (!good) break;
    }
    if (!good)
      fail(kExitFailed, "%s is damaged at offset %llu: compile the trace again", path,
           static_cast<unsigned long long>(stream.chunk_offset()));
  }
  const std::uint64_t time = sys::cpu_ns() - begin;
  sys::unmap(window, compiled::kChunkBytes);
  return time;
}

// Twice: nothing is found damaged in the middle, and the file is in the system's cache; then to know the time it takes.
std::uint64_t rehearse(const Compiled& trace, const char* path) {
  read_all(trace, path, true);
  return read_all(trace, path, false);
}

// ---- running it -------------------------------------------------------------------------------

struct Running {  // one thread
  Workload* workload;
  std::uint64_t thread;
  std::uint8_t* window;
  sys::Thread handle;
};

struct Copy {
  Workload workload{};
  Running* running = nullptr;
  sys::Thread starter;
  std::atomic<std::uint32_t>* left = nullptr;  // copies not done
};

constexpr std::uint64_t kThreadOwnBytes = sys::kStackBytes + compiled::kChunkBytes;

void run_thread(void* argument) {
  auto* running = static_cast<Running*>(argument);
  work(*running->workload, running->thread, running->window);
}

void reap(Running& running) {
  sys::join(running.handle);
  sys::unmap(running.window, compiled::kChunkBytes);
  running.workload->ledger->own_bytes -= kThreadOwnBytes;
  running.workload = nullptr;
}

void start(Copy& copy, std::uint64_t thread) {
  Running& running = copy.running[thread];
  running = {.workload = &copy.workload, .thread = thread, .window = nullptr, .handle = {}};
  running.window = static_cast<std::uint8_t*>(sys::map(compiled::kChunkBytes));
  copy.workload.ledger->add_own(kThreadOwnBytes);
  copy.workload.started.fetch_add(1);  // before it can move on: `next` of the one behind it counts from now
  if (!sys::start(running.handle, run_thread, &running))
    fail(kExitFailed, "thread %llu of the trace could not be started", static_cast<unsigned long long>(thread));
}

// Starts each thread when its first epoch is near, and gives back what ended ones had.
void run_copy(void* argument) {
  auto& copy = *static_cast<Copy*>(argument);
  Workload& workload = copy.workload;
  const std::uint64_t threads = workload.header->threads;
  std::uint64_t oldest = 0;
  workload.advance();  // to the first epoch there is
  for (std::uint64_t i = 0; i < threads; ++i) {
    workload.await_due(static_cast<std::uint32_t>(workload.threads[i].first_epoch));
    for (std::uint64_t old = oldest; old < i; ++old) {
      if (copy.running[old].workload && workload.next[old].load() == Workload::kEnded) reap(copy.running[old]);
      if (old == oldest && !copy.running[old].workload) ++oldest;
    }
    start(copy, i);
  }
  for (std::uint64_t i = oldest; i < threads; ++i)
    if (copy.running[i].workload) reap(copy.running[i]);
  copy.left->fetch_sub(1);
  sys::wake(*copy.left);
}

// When order is the program's, a thread may be as far ahead of the slowest as it likes, in epochs, while no more lives
// than half as much again as was recorded, and some.
constexpr std::uint32_t kAnyLead = 1 << 30;
constexpr std::uint64_t kMoreLive = 64 << 20;
// Live memory is counted for all threads at once, and they must not meet there often.
constexpr std::uint64_t kFlushBytes = 1024;

template <typename T> T* table(std::uint64_t count, Ledger& ledger) {
  const std::size_t bytes = count * sizeof(T) + 1;
  ledger.add_own((bytes + 4095) / 4096 * 4096);
  return static_cast<T*>(sys::map(bytes));
}

void prepare(Copy& copy, unsigned index, const Compiled& trace, const Options& options, Ledger& ledger) {
  Workload& workload = copy.workload;
  workload.file = trace.file;
  workload.header = &trace.header;
  workload.threads = trace.threads;
  workload.ledger = &ledger;
  workload.settings = options.settings;
  workload.copy = index;
  const std::uint64_t at_once = std::max<std::uint64_t>(1, trace.header.most_threads);
  const std::uint64_t epoch_bytes = std::max<std::uint64_t>(1, trace.header.epoch_bytes);
  const std::uint64_t peak = trace.header.peak_live_bytes;
  workload.most_live = static_cast<std::int64_t>(options.copies * (peak + std::max(peak / 2, kMoreLive)));
  if (options.settings.strict) {
    workload.lead = 1;
    workload.flush_bytes = static_cast<std::int64_t>(epoch_bytes / (2 * at_once));
  } else {
    workload.lead = kAnyLead;
    workload.flush_bytes = static_cast<std::int64_t>(std::max(epoch_bytes / (2 * at_once), kFlushBytes));
  }
  workload.spins = at_once * options.copies <= sys::cores() ? 2000 : 50;
  workload.slots = table<Slot>(trace.header.slots, ledger);
  workload.next = table<std::atomic<std::uint32_t>>(trace.header.threads, ledger);
  copy.running = table<Running>(trace.header.threads, ledger);
  for (std::uint64_t i = 0; i < trace.header.threads; ++i)
    workload.next[i] = static_cast<std::uint32_t>(trace.threads[i].first_epoch);
}

struct Timing {
  std::uint64_t begin_ns;
  std::uint64_t begin_cpu_ns;
  std::uint64_t wall_ns;
  std::uint64_t cpu_ns;
  std::uint64_t peak_resident;  // by the system's own mark; 0: unknown
};

Sample sample(const Timing& timing, const Ledger& ledger) {
  return {.time_ns = sys::now_ns() - timing.begin_ns,
          .resident = sys::resident_bytes(),
          .own = ledger.own_bytes,
          .commit = sys::commit_bytes(),
          .live = ledger.live,
          .cpu_ns = sys::cpu_ns() - timing.begin_cpu_ns};
}

Timing run(Copy* copies, unsigned count, Ledger& ledger, Samples& samples) {
  std::atomic<std::uint32_t> left{count};
  const bool reset = sys::reset_peak();
  const std::uint64_t peak_before = sys::peak_resident_bytes();
  Timing timing{
      .begin_ns = sys::now_ns(), .begin_cpu_ns = sys::cpu_ns(), .wall_ns = 0, .cpu_ns = 0, .peak_resident = 0};
  for (unsigned i = 0; i < count; ++i) {
    copies[i].left = &left;
    copies[i].workload.start_ns = timing.begin_ns;
    ledger.add_own(sys::kStackBytes);
    if (!sys::start(copies[i].starter, run_copy, &copies[i])) fail(kExitFailed, "no thread could be started");
  }
  for (std::uint64_t due = timing.begin_ns; left.load() != 0;) {
    const std::uint64_t now = sys::now_ns();
    if (now >= due) {
      samples.add(sample(timing, ledger));
      due = now + samples.interval_ns();
    }
    const std::uint32_t seen = left.load();
    if (seen != 0) sys::wait(left, seen, std::min(due - now, samples.interval_ns()));
  }
  timing.wall_ns = sys::now_ns() - timing.begin_ns;
  timing.cpu_ns = sys::cpu_ns() - timing.begin_cpu_ns;
  const std::uint64_t peak = sys::peak_resident_bytes();
  if (reset || peak > peak_before) timing.peak_resident = peak;
  samples.add(sample(timing, ledger));
  for (unsigned i = 0; i < count; ++i) sys::join(copies[i].starter);
  return timing;
}

// ---- results ----------------------------------------------------------------------------------

using Long = unsigned long long;

constexpr std::size_t kFewestSamples = 5;  // with fewer, a mean or a highest one says little

struct Own {
  std::uint64_t tables;  // slots, threads, samples: there from the start
  std::uint64_t rest;    // resident at the start that is not the heap's: the program, the C library
  std::uint64_t reading_ns;
};

std::int64_t heap_of(const Sample& sample, const Own& own) {
  return static_cast<std::int64_t>(sample.resident) - static_cast<std::int64_t>(sample.own + own.rest);
}

// The system's mark, less the most that was the replayer's own, can only be too low; so can a sample.
std::int64_t peak_heap(const Samples& samples, const Own& own, const Timing& timing, const Ledger& ledger) {
  std::int64_t peak =
      static_cast<std::int64_t>(timing.peak_resident) - static_cast<std::int64_t>(ledger.most_own_bytes + own.rest);
  for (std::size_t i = 0; i < samples.count(); ++i) peak = std::max(peak, heap_of(samples[i], own));
  return std::max<std::int64_t>(peak, 0);
}

struct Means {
  double heap = 0;
  double live = 0;
};

Means means(const Samples& samples, const Own& own) {
  Means result;
  double time = 0;
  for (std::size_t i = 1; i < samples.count(); ++i) {
    const double step = static_cast<double>(samples[i].time_ns - samples[i - 1].time_ns);
    time += step;
    result.heap += step * 0.5 * static_cast<double>(heap_of(samples[i], own) + heap_of(samples[i - 1], own));
    result.live += step * 0.5 * static_cast<double>(samples[i].live + samples[i - 1].live);
  }
  if (time > 0) result.heap /= time, result.live /= time;
  return result;
}

template <typename Value>
void series(std::FILE* out, const char* name, const Samples& samples, const char* end, Value value) {
  std::fprintf(out, "\"%s\":[", name);
  for (std::size_t i = 0; i < samples.count(); ++i)
    std::fprintf(out, "%s%lld", i ? "," : "", static_cast<long long>(value(samples[i])));
  std::fprintf(out, "]%s", end);
}

void write_series(std::FILE* out, const Samples& samples, const Own& own) {
  std::fputs("\"series\":{", out);
  series(out, "t_us", samples, ",", [](const Sample& s) { return s.time_ns / 1000; });
  if (samples[0].resident != 0) {
    series(out, "resident_bytes", samples, ",", [](const Sample& s) { return s.resident; });
    series(out, "heap_bytes", samples, ",", [&](const Sample& s) { return heap_of(s, own); });
  }
  if (samples[0].commit != 0) series(out, "commit_bytes", samples, ",", [](const Sample& s) { return s.commit; });
  series(out, "cpu_us", samples, ",", [](const Sample& s) { return s.cpu_ns / 1000; });
  series(out, "live_bytes", samples, "}", [](const Sample& s) { return s.live; });
}

// Absent where the clock is too coarse for it.
void write_cpu(std::FILE* out, const char* name, std::uint64_t ns) {
  constexpr std::uint64_t kFewestSteps = 10;
  if (ns >= kFewestSteps * sys::cpu_step_ns()) std::fprintf(out, ",\"%s\":%llu", name, Long{ns / 1000});
}

void write_memory(std::FILE* out, const Samples& samples, const Own& own, const Timing& timing, const Ledger& ledger) {
  std::fprintf(out, "\"peak_live_bytes\":%lld,\"live_at_end_bytes\":%lld,\n", static_cast<long long>(ledger.peak_live),
               static_cast<long long>(ledger.live));
  std::fprintf(out, "\"own\":{\"tables_bytes\":%llu,\"per_thread_bytes\":%llu,\"at_start_bytes\":%llu",
               Long{own.tables}, Long{kThreadOwnBytes}, Long{own.rest});
  write_cpu(out, "reading_us", own.reading_ns);
  std::fputs("},\n", out);
  if (samples[0].resident == 0) return;
  const bool enough = samples.count() >= kFewestSamples;
  if (enough || timing.peak_resident != 0) {
    const std::int64_t peak = peak_heap(samples, own, timing, ledger);
    std::fprintf(out, "\"peak_heap_bytes\":%lld,\n", static_cast<long long>(peak));
    if (ledger.peak_live > 0)
      std::fprintf(out, "\"peak_resident_over_live\":%.4f,\n",
                   static_cast<double>(peak) / static_cast<double>(ledger.peak_live));
  }
  if (!enough) return;
  const Means mean = means(samples, own);
  std::fprintf(out, "\"mean_heap_bytes\":%.0f,\"mean_live_bytes\":%.0f,\n", mean.heap, mean.live);
  if (mean.live > 0) std::fprintf(out, "\"resident_over_live\":%.4f,\n", mean.heap / mean.live);
}

void write_results(const Options& options, const Compiled& trace, const Timing& timing, const Samples& samples,
                   const Own& own, const Ledger& ledger) {
  std::FILE* out = std::fopen(options.out, "w");
  if (!out) fail(kExitFailed, "%s cannot be written: %s", options.out, std::strerror(errno));
  std::fprintf(out,
               "{\"type\":\"replay\",\"version\":\"%s\",\"copies\":%u,\"threads\":%llu,\"most_"
               "threads\":%u,\n",
               REHEAP_LAB_VERSION, options.copies, Long{trace.header.threads}, trace.header.most_threads);
  std::fprintf(out,
               "\"operations\":%llu,\"remote_operations\":%llu,\"epochs\":%llu,\"epoch_bytes\":%"
               "llu,\"slots\":%llu,\n",
               Long{ledger.operations}, Long{trace.header.remote * options.copies}, Long{trace.header.epochs},
               Long{trace.header.epoch_bytes}, Long{trace.header.slots});
  std::fprintf(out, "\"recorded\":{\"peak_live_bytes\":%llu,\"peak_live_blocks\":%llu,\"duration_us\":%llu},\n",
               Long{trace.header.peak_live_bytes}, Long{trace.header.peak_live_blocks},
               Long{trace.header.duration_ns / 1000});
  std::fprintf(out, "\"wall_us\":%llu", Long{timing.wall_ns / 1000});
  write_cpu(out, "cpu_us", timing.cpu_ns);
  std::fputs(",\n", out);
  std::fprintf(out, "\"waits\":{\"handoffs\":%llu,\"handoff_us\":%llu,\"epochs\":%llu,\"epoch_us\":%llu},\n",
               Long{ledger.handoff_waits}, Long{ledger.handoff_wait_ns / 1000}, Long{ledger.epoch_waits},
               Long{ledger.epoch_wait_ns / 1000});
  std::fprintf(out,
               "\"errors\":{\"ordering\":%llu,\"contents\":%llu,\"alignment\":%llu,\"failed_"
               "allocations\":%llu},\n",
               Long{ledger.ordering_errors}, Long{ledger.content_errors}, Long{ledger.alignment_errors},
               Long{ledger.failed_allocations});
  write_memory(out, samples, own, timing, ledger);
  write_series(out, samples, own);
  std::fputs("}\n", out);
  if (std::ferror(out) | std::fclose(out)) fail(kExitFailed, "%s could not be written whole", options.out);
}

int report_errors(const Ledger& ledger) {
  struct {
    const char* what;
    std::uint64_t count;
  } const kinds[] = {{"blocks did not hold what was written there", ledger.content_errors},
                     {"blocks were not aligned as asked for", ledger.alignment_errors},
                     {"allocations failed", ledger.failed_allocations},
                     {"operations came out of order", ledger.ordering_errors}};
  int status = 0;
  for (const auto& kind : kinds) {
    if (kind.count == 0) continue;
    std::fprintf(stderr, "reheap-replay: %llu %s\n", Long{kind.count}, kind.what);
    status = kExitErrors;
  }
  return status;
}

// Where the system cannot tell what has a name, what the allocator began with is left out too.
std::uint64_t rest_of(std::uint64_t tables) {
  const std::uint64_t named = sys::named_bytes(), resident = sys::resident_bytes();
  return named != 0 ? named : resident - std::min(resident, tables);
}

int replay(const Options& options) {
  static Ledger ledger;
  const Compiled trace = load(options.file, ledger);
  Own own{};
  own.reading_ns = rehearse(trace, options.file);
  Samples samples(std::uint64_t{options.sample_ms} * 1'000'000);
  ledger.add_own(Samples::bytes());
  Copy* copies = table<Copy>(options.copies, ledger);
  for (unsigned i = 0; i < options.copies; ++i) prepare(*new (copies + i) Copy, i, trace, options, ledger);
  own.tables = ledger.own_bytes;
  own.rest = rest_of(own.tables);
  const Timing timing = run(copies, options.copies, ledger, samples);
  write_results(options, trace, timing, samples, own, ledger);
  return report_errors(ledger);
}

}  // namespace
}  // namespace lab

int main(int count, char** arguments) { return lab::replay(lab::parse(count, arguments)); }
