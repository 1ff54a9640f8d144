"""The recorder: a program's trace says what the program did, whatever happened to it."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import fakes
import pytest
import recording
import trace_reader
from recording import RECORD, Lab

from reheap_lab import record

pytestmark = recording.NEEDED


@pytest.fixture
def lab(tmp_path) -> Lab:
    return Lab(tmp_path)


def between_marks(trace: trace_reader.Trace) -> list[trace_reader.Event]:
    places = [i for i, event in enumerate(trace.events) if event.size == 77777]
    return trace.events[places[0] + 2:places[1]]


def faults(trace: trace_reader.Trace) -> list[str]:
    """What a merge by time finds: releases of what is not there, blocks had twice."""
    alive, found = set(), []
    for when, _, what, address, _ in trace_reader.merged(trace):
        if (what == "acquire") == (address in alive):
            found.append(f"{what} of {address:#x} at {when}")
        alive.symmetric_difference_update([address])
    return found


# ---- what a trace says --------------------------------------------------------------------------

def test_every_call_is_told_as_it_was_made(lab):
    trace = lab.recorded("""
int main(void) {
  void *p, *q;
  mark();
  p = malloc(40);
  p = realloc(p, 3000);
  q = calloc(7, 9);
  free(p);
  free(q);
  free(NULL);
  p = aligned_alloc(256, 512); free(p);
  if (posix_memalign(&p, 64, 100)) return 1;
  free(p);
  p = memalign(4096, 1); free(p);
  p = realloc(NULL, 11);
  p = realloc(p, 0);
  p = malloc(PTRDIFF_MAX + 1ul);
  p = calloc(SIZE_MAX, 2);
  p = reallocarray(NULL, 5, 6); free(p);
  p = valloc(10); free(p);
  mark();
}""")
    told = [(event.kind, event.size, event.alignment) for event in between_marks(trace)]
    assert told == [
        ("malloc", 40, 0), ("realloc", 3000, 0), ("calloc", 63, 0), ("free", 0, 0), ("free", 0, 0),
        ("aligned", 512, 256), ("free", 0, 0), ("aligned", 100, 64), ("free", 0, 0), ("aligned", 1, 4096), ("free", 0,
                                                                                                            0),
        ("malloc", 11, 0), ("free", 0, 0), ("failed", 2**63, 0), ("failed", 2**64 - 1, 0),
        ("malloc", 30, 0), ("free", 0, 0), ("aligned", 10, trace.header.page_bytes), ("free", 0, 0)]
    assert [event.asked for event in trace.events if event.kind == "failed"] == ["malloc", "calloc"]


def test_addresses_are_those_the_program_had(lab):
    lab.program("""
int main(void) {
  char line[100];
  for (int i = 0; i < 50; ++i) {
    void *p = malloc(1000 + i), *q = realloc(p, 5000 + i);
    write(1, line, snprintf(line, sizeof line, "%d %p\\n", 5000 + i, q));
  }
}""")
    done = lab.record(str(lab.folder / "program"))
    events = {event.size: event for event in trace_reader.read(lab.trace).events}
    for line in done.stdout.splitlines():
        size, address = line.split()
        event = events[int(size)]
        assert event.address == int(address, 16)
        assert event.old_address == events[int(size) - 4000].address
        assert event.begin <= event.time


def test_the_header_describes_the_process(lab):
    trace = lab.recorded("int main(void) { mark(); usleep(20000); mark(); }", "one", "two words")
    header = trace.header
    assert header.command == [str(lab.folder / "program"), "one", "two words"]
    assert (header.pointer_bytes, header.system, header.ended, header.stopped) == (8, "linux", True, 0)
    assert header.page_bytes == os.sysconf("SC_PAGE_SIZE")
    assert not header.forked and header.lost == 0 and header.threads == 1
    ticks = [event.time for event in trace.events]
    assert header.begin[0] <= ticks[0] and ticks == sorted(ticks)
    assert (ticks[-1] - header.begin[0]) * header.tick_seconds >= 0.02


def test_a_large_block_is_measured_when_it_is_freed(lab):
    trace = lab.recorded("""
int main(void) {
  char *p = malloc(8 << 20);
  memset(p, 1, 1 << 20);
  free(p);
  free(malloc(1000));
}""")
    large = next(event for event in trace.events if event.size == 8 << 20)
    freed = next(event for event in trace.events if event.kind == "free" and event.address == large.address)
    # The kernel may give whole large pages of 2 MiB.
    assert 1024 <= freed.resident_kib <= 1024 + 2 * 2048
    assert trace.events[-1].resident_kib is None


# ---- threads ------------------------------------------------------------------------------------

EXCHANGE = """
static _Atomic(void *) box[32];
static void *work(void *number) {
  unsigned long x = (unsigned long)number * 2654435761u + 1;
  for (int i = 0; i < 4000; ++i) {
    x ^= x << 13; x ^= x >> 7; x ^= x << 17;
    void *p = malloc(16 + x % 200);
    if (x % 7 == 0) p = realloc(p, 16 + x % 4000);
    free(atomic_exchange(&box[(x >> 20) % 32], p));
  }
  return NULL;
}
int main(void) {
  pthread_t thread[6];
  for (int round = 0; round < 2; ++round) {
    for (long i = 0; i < 6; ++i) pthread_create(&thread[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < 6; ++i) pthread_join(thread[i], NULL);
  }
  for (int i = 0; i < 32; ++i) free(box[i]);
}"""


def test_blocks_passed_between_threads_are_in_order(lab):
    trace = lab.recorded(EXCHANGE)
    assert faults(trace) == []
    assert trace.header.threads == 13
    kinds = [event.kind for event in trace.events]
    assert kinds.count("thread start") >= 13 and kinds.count("thread end") >= 12
    assert kinds.count("malloc") >= 48000
    assert all(chunk.state == 2 for chunk in trace.chunks)
    # Threads that ended left their streams to later ones.
    assert len({chunk.stream for chunk in trace.chunks}) <= 13


def test_many_short_threads_share_few_chunks(lab):
    trace = lab.recorded("""
static void *work(void *none) { free(malloc(100)); return none; }
int main(void) {
  pthread_t thread;
  for (int i = 0; i < 500; ++i) { pthread_create(&thread, NULL, work, NULL); pthread_join(thread, NULL); }
}""")
    assert trace.header.threads == 501
    assert lab.trace.stat().st_size < 10 * 65536
    assert faults(trace) == []


def test_a_handler_of_a_signal_may_allocate(lab):
    trace = lab.recorded("""
static volatile long caught;
/* Only the recorder's own safety is tried: the block is taken where malloc cannot be interrupted in its middle. */
static void handler(int number) { caught++; void *p = memalign(32, 48); (void)p; }
int main(void) {
  signal(SIGUSR1, handler);
  mark();
  for (int i = 0; i < 200; ++i) raise(SIGUSR1);
  mark();
}""")
    assert [event.kind for event in between_marks(trace)].count("aligned") == 200
    assert trace.header.lost == 0


# ---- processes ----------------------------------------------------------------------------------

def test_a_forked_child_has_a_trace_of_its_own(lab):
    parent = lab.recorded("""
int main(void) {
  void *inherited = malloc(12345);
  if (fork() == 0) { free(inherited); free(malloc(23456)); exit(0); }
  wait(NULL);
  free(malloc(34567));
}""")
    [_, path] = record.traces(lab.trace)
    child = trace_reader.read(path)
    assert path.name == f"t.{child.header.process}.rht"
    assert child.header.forked and child.header.parent == parent.header.process
    inherited = next(event for event in parent.events if event.size == 12345)
    assert inherited.time <= child.header.fork_ticks <= child.events[0].time
    assert inherited.address in [event.address for event in child.events if event.kind == "free"]
    assert 23456 in [event.size for event in child.events]
    assert {12345, 34567} <= {event.size for event in parent.events}
    assert 23456 not in [event.size for event in parent.events]


FAMILY = """
int main(int count, char **words) {
  if (count > 1) { free(malloc(atoi(words[1]))); return 0; }
  if (fork() == 0) execl(words[0], words[0], "11111", NULL);
  wait(NULL);
  execl(words[0], words[0], "22222", NULL);
}"""


def test_programs_that_follow_are_recorded(lab):
    lab.recorded(FAMILY)
    sizes = {event.size for path in record.traces(lab.trace) for event in trace_reader.read(path).events}
    assert {11111, 22222} <= sizes


def test_without_children_only_the_first_process_is_recorded(lab):
    first = lab.recorded(FAMILY, options=("--no-children",)).header.process
    traces = [trace_reader.read(path) for path in record.traces(lab.trace)]
    assert {trace.header.process for trace in traces} == {first}
    assert 22222 in {event.size for trace in traces for event in trace.events}


def test_a_killed_process_leaves_what_it_did(lab):
    done = lab.record(lab.program("""
static void *work(void *none) { for (;;) { free(malloc(100)); usleep(1); } }
int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  for (int i = 0; i < 20000; ++i) free(malloc(200));
  void *last = malloc(54321);
  kill(getpid(), SIGKILL);
}"""))
    assert done.returncode == -signal.SIGKILL
    trace = trace_reader.read(lab.trace)
    assert trace.complaints == [] and faults(trace) == []
    assert not trace.header.ended
    assert [event.kind for event in trace.events if event.size == 200].count("malloc") == 20000
    assert 54321 in [event.size for event in trace.events]


# ---- limits and damage --------------------------------------------------------------------------

MANY = """
int main(int count, char **words) {
  for (long i = atol(words[1]); i; --i) free(malloc(i % 500));
  puts("done");
}"""


def test_a_limit_ends_the_trace_and_not_the_program(lab):
    done = lab.record(lab.program(MANY), "60000", options=("--limit", "140K"))
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr.count("reached its size limit") + done.stderr.count("reached the size limit") == 2
    assert lab.trace.stat().st_size <= 140 * 1024
    trace = trace_reader.read(lab.trace)
    assert trace.header.stopped == 1 and trace.complaints == []
    # That the rest is missing is said: to count the one event that met the limit would be to say that it alone is.
    assert trace.header.lost == 0 and "could not be written" not in done.stderr


AT_ONCE = """
static pthread_barrier_t all;
static void *work(void *unused) {
  pthread_barrier_wait(&all);
  free(malloc(10));
  pthread_barrier_wait(&all);
  return 0;
}
int main(void) {
  pthread_t threads[16];
  pthread_barrier_init(&all, 0, 16);
  for (int i = 0; i < 16; ++i) pthread_create(&threads[i], 0, work, 0);
  for (int i = 0; i < 16; ++i) pthread_join(threads[i], 0);
}"""


def test_threads_that_meet_the_limit_at_once_leave_a_whole_file(lab):
    program = lab.program(AT_ONCE)
    settings = record.environment(lab.trace, True, 528 << 10) | {"LD_PRELOAD": record.preload(None)}  # eight chunks
    for _ in range(20):
        lab.trace.unlink(missing_ok=True)
        subprocess.run([program], check=True, env=settings, capture_output=True)
        header = trace_reader.read(lab.trace).header
        assert header.stopped == 1
        assert 4096 + header.chunks * 65536 <= lab.trace.stat().st_size


def test_a_full_disk_ends_the_trace_and_not_the_program(lab):
    program = lab.program(MANY)
    done = subprocess.run(["sh", "-c", f"ulimit -f 400; exec {program} 200000"], capture_output=True, text=True,
                          env=record.environment(lab.trace, True, None) | {"LD_PRELOAD": record.preload(None)})
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr.count("no room left on the disk") == 1


def test_memory_does_not_grow_with_the_trace(lab):
    body = MANY.replace('puts("done")', 'FILE *f = fopen("/proc/self/status", "r"); char text[4096]; '
                        'text[fread(text, 1, 4095, f)] = 0; puts(strstr(text, "VmHWM"))')
    program = lab.program(body)
    peaks = []
    for count in ("1000", "600000"):
        done = lab.record(program, count)
        peaks.append(int(done.stdout.split()[1]))
    assert lab.trace.stat().st_size > 2 << 20
    assert peaks[1] - peaks[0] < 600


def test_damage_is_told_and_the_rest_is_read(lab):
    whole = lab.recorded(MANY, "28000")
    data = bytearray(lab.trace.read_bytes())
    data[4096 + 65536 + 1000] ^= 4
    lab.trace.write_bytes(data[:4096 + 2 * 65536 + 3000])
    damaged = trace_reader.read(lab.trace)
    assert ["checksum" in damaged.complaints[0], "no chunk" in damaged.complaints[1]] == [True, True]
    assert len(whole.chunks) > 2 and len(damaged.chunks) == 1
    data[200] ^= 1
    lab.trace.write_bytes(data)
    with pytest.raises(trace_reader.Damaged, match="header"):
        trace_reader.read(lab.trace)


# ---- the command --------------------------------------------------------------------------------

def test_the_status_of_the_command_passes_through(lab):
    assert lab.record("sh", "-c", "exit 7").returncode == 7
    assert lab.record("sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM
    assert lab.record("./absent").returncode == 127
    assert lab.record(str(lab.folder)).returncode == 126


def test_a_program_for_musl_is_refused(lab):
    if not pathlib.Path("/usr/bin/musl-gcc").exists():
        pytest.skip("there is no compiler for musl")
    subprocess.run(["musl-gcc", "-o", lab.folder / "m", "-xc", "-"], input="int main(void) { return 0; }", text=True,
                   check=True)
    refused = lab.record(str(lab.folder / "m"))
    assert refused.returncode == 2 and "is a program for musl" in refused.stderr


HUSHED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)  # whoever runs the tests may have had them ignored


@pytest.mark.parametrize("send", [os.kill, os.killpg])  # to one alone, and as timeout and a closed terminal do
@pytest.mark.parametrize("number", HUSHED)
def test_a_signal_to_the_recording_goes_to_the_command(lab, number, send):
    program = lab.program("int main(void) { mark(); puts(\"up\"); fflush(stdout); pause(); }")
    running = subprocess.Popen([*RECORD, "-o", str(lab.trace), "--", program], stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.PIPE, start_new_session=True,
                               preexec_fn=lambda: [signal.signal(one, signal.SIG_DFL) for one in HUSHED])
    assert running.stdout.readline() == "up\n"
    time.sleep(0.1)
    send(running.pid, number)
    assert running.wait(timeout=30) == -number
    assert "reheap record: about " in running.stderr.read()
    assert trace_reader.read(lab.trace).events


def test_the_summary_counts(lab):
    done = lab.record(lab.program(MANY), "2000")
    trace = trace_reader.read(lab.trace)
    assert f" {len(trace.events):,} events, " in done.stderr
    assert f" 1 thread, 1 file, 0.1 MiB: {lab.trace}" in done.stderr


def test_earlier_traces_make_way_and_other_files_do_not(lab):
    lab.recorded(FAMILY)
    assert len(record.traces(lab.trace)) == 3
    lab.recorded("int main(void) { mark(); }")
    assert record.traces(lab.trace) == [lab.trace]
    lab.trace.write_text("a letter")
    done = lab.record("true")
    assert done.returncode == 2 and "is no trace" in done.stderr
    assert lab.trace.read_text() == "a letter"


def test_no_name_is_not_told_as_a_folder_to_remove(lab):
    done = lab.record("true", options=("-o", ""))
    assert done.returncode == 2 and "is a folder: name a file in it" in done.stderr


def test_a_second_recording_leaves_the_first_ones_file(lab):
    """It is refused while the first goes on, also where nothing is written yet; then it may have the name."""
    first = subprocess.Popen([*RECORD, "-o", lab.trace, "--", "cat"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not lab.trace.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    refused = lab.record("true")
    first.communicate(b"more")
    assert (refused.returncode, first.returncode) == (2, 0)
    assert f"another `reheap record` writes to {lab.trace}" in refused.stderr and "-o" in refused.stderr
    assert trace_reader.read(lab.trace).header.command == ["cat"]
    assert lab.record("true").returncode == 0


@pytest.mark.parametrize("words, status", [(["--limit", "much", "--", "true"], 2),
                                           (["--with", "none", "--", "true"], 2),
                                           (["--", "./absent"], 127), (["--", ""], 127), (["--", "/"], 126)])
def test_what_cannot_start_leaves_the_earlier_trace(lab, words, status):
    lab.recorded("int main(void) { mark(); }")
    before = lab.trace.read_bytes()
    done = subprocess.run([*RECORD, "-o", str(lab.trace), *words], capture_output=True, text=True)
    assert done.returncode == status and "event" not in done.stderr
    assert lab.trace.read_bytes() == before


def test_a_script_that_names_no_interpreter_is_the_shells(lab, monkeypatch):
    script = lab.folder / "script"
    script.write_text('echo "$0 $1"; exit 5')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(lab.folder), prepend=":")
    for name in (str(script), script.name):
        done = lab.record(name, "a b")
        assert (done.returncode, done.stdout) == (5, f"{script} a b\n") and lab.trace.exists()
    script.write_bytes(fakes.elf_bytes(machine=1))
    assert lab.record(str(script)).returncode == 126


@pytest.fixture
def static(lab) -> str:
    source = lab.folder / "static.c"
    source.write_text("int main(void) { for (volatile long i = 0; i < 500000000; i++); return 0; }")
    made = subprocess.run(["cc", "-static", "-o", lab.folder / "static", source], capture_output=True)
    if made.returncode != 0:
        pytest.skip("there is no static C library")
    return str(lab.folder / "static")


def test_what_cannot_be_recorded_is_said(lab, static):
    done = lab.record(static)
    assert done.returncode == 125 and "statically linked" in done.stderr


@pytest.mark.parametrize("script", ["{}; true", "exec {}"])
def test_what_was_not_recorded_of_a_command_is_told_by_its_share_of_the_time(lab, static, script):
    done = lab.record("sh", "-c", "echo hello; " + script.format(static))
    assert done.returncode == 0 and re.search(r"(9\d|100) % of the CPU time .* left no trace", done.stderr), done.stderr


BURN = "for (volatile long i = 0; i < 500000000; i++);"


@pytest.mark.parametrize("body", [f"int main(void) {{ {BURN} mark(); return 0; }}",
                                  f"int main(void) {{ mark(); {BURN} return 0; }}",
                                  f"int main(void) {{ mark(); {BURN} _exit(0); }}",
                                  f"int main(void) {{ if (fork() == 0) {{ mark(); {BURN} _exit(0); }} wait(0); }}",
                                  f"int main(void) {{ mark(); if (vfork() == 0) _exit(0); {BURN} return 0; }}"])
def test_the_time_of_recorded_programs_is_not_missed(lab, body):
    done = lab.record(lab.program(body))
    assert done.returncode == 0 and "left no trace" not in done.stderr
    assert 0 < record.survey(record.traces(lab.trace)).cpu_s < 60


def test_the_time_of_who_was_killed_is_not_missed(lab):
    done = lab.record(lab.program(f"int main(void) {{ mark(); {BURN} raise(SIGKILL); }}"))
    assert done.returncode == -signal.SIGKILL and "left no trace" not in done.stderr


@pytest.mark.parametrize("files, missed", [(1, True), (80, False)])
def test_what_many_programs_take_to_start_is_not_missed(capsys, files, missed):
    record.say_missed(record.Written(files=files, cpu_s=0.1), 0.25)
    assert ("left no trace" in capsys.readouterr().err) == missed


@pytest.mark.parametrize(("text", "count"), [("4096", 4096), ("1k", 1024), ("500M", 500 << 20), ("1.5GiB", 3 << 29)])
def test_sizes(text, count):
    assert record.size(text) == count


@pytest.mark.parametrize("text", ["", "0", "many", "-5M", "5X"])
def test_what_is_no_size(text):
    with pytest.raises(record.UsageError):
        record.size(text)
