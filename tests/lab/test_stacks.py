"""Call stacks: recorded by programs of every kind, and what `reheap-trace sites` makes of them."""

import bisect
import collections
import json
import math
import os
import pathlib
import random
import re
import signal
import subprocess

import pytest
import recording
import trace_reader
import trace_writing
from recording import Lab

from reheap_lab import native, record

FLAGS = ("-O2", "-fomit-frame-pointer", "-rdynamic", "-ldl")
SITE = "#define SITE __attribute__((noinline, noclone))\n#define HERE __asm__ volatile(\"\" ::: \"memory\")\n"


@pytest.fixture
def lab(tmp_path) -> Lab:
    return Lab(tmp_path)


def sites(*paths) -> dict:
    done = subprocess.run([str(native.program("reheap-trace")), "sites", *map(str, paths)], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Functions:
    """The names of the functions in a program or library that was made here, by where they begin in the file."""

    def __init__(self, path: str):
        lines = subprocess.run(["nm", "--defined-only", path], check=True, capture_output=True, text=True).stdout
        rows = sorted((int(address, 16), name) for address, kind, name in map(str.split, lines.splitlines())
                      if kind in "tT")
        self.starts, self.names = zip(*rows, strict=True)

    def name(self, offset: int) -> str:
        return self.names[bisect.bisect_right(self.starts, offset - 1) - 1]


def named(found: dict, folder: pathlib.Path) -> dict[tuple[str, ...], collections.Counter]:
    """What each stack allocated, by the names of its functions; those of others' files have none."""
    known = {module["path"]: Functions(module["path"]) for module in found["modules"]
             if module["path"].startswith(str(folder)) and os.path.exists(module["path"])}

    def name(address: int) -> str:
        module = next(m for m in found["modules"] if int(m["start"], 16) <= address < int(m["end"], 16))
        functions = known.get(module["path"])
        offset = address - int(module["start"], 16) + int(module["file_offset"], 16)
        return functions.name(offset) if functions else ""

    names = [name(int(frame, 16)) for frame in found["frames"]]
    rows = collections.defaultdict(collections.Counter)
    for stack in found["stacks"]:
        told = {key: value for key, value in stack.items() if key not in ("frames", "lifetime_us")}
        rows[tuple(names[frame] for frame in stack["frames"])].update(told)
    return dict(rows)


def by_site(found: dict, folder: pathlib.Path, outermost: str = "main") -> dict[tuple[str, ...], collections.Counter]:
    """Of the stacks that reach `outermost`, the part below it."""
    rows = collections.defaultdict(collections.Counter)
    for names, row in named(found, folder).items():
        if outermost in names:
            rows[names[:names.index(outermost)]].update(row)
    return dict(rows)


def recorded(lab: Lab, body: str, *words: str, stacks: str = "all", flags: tuple[str, ...] = ()) -> dict:
    done = lab.record(lab.program(SITE + body, *FLAGS, *flags), *words, options=("--stacks", stacks))
    assert done.returncode == 0, done.stderr
    return sites(lab.trace)


# ---- what is counted ----------------------------------------------------------------------------

KNOWN = """
static void *kept[100]; static int count;
SITE void *take(size_t size) { void *p = malloc(size); HERE; return p; }
SITE void leak(void) { kept[count++] = take(100); HERE; }
SITE void temporary(void) { free(take(50)); HERE; }
SITE void peak(void) {
  void *p[5];
  for (int i = 0; i < 5; ++i) p[i] = take(10000);
  for (int i = 0; i < 5; ++i) free(p[i]);
  HERE;
}
SITE void grow(void) { void *p = calloc(1, 10); HERE; p = realloc(p, 2000); HERE; free(p); }
int main(void) {
  for (int i = 0; i < 6; ++i) leak();
  for (int i = 0; i < 7; ++i) temporary();
  for (int i = 0; i < 3; ++i) grow();
  peak();
  for (int i = 0; i < 4; ++i) leak();
}"""


def row(allocations: int, size: int, never_freed: int = 0, at_peak: int = 0, temporary: int = 0) -> dict[str, int]:
    return {"sampled": allocations, "allocations": allocations, "bytes": allocations * size,
            "never_freed": never_freed, "never_freed_bytes": never_freed * size, "at_peak": at_peak,
            "at_peak_bytes": at_peak * size, "temporary": temporary, "temporary_bytes": temporary * size}


@recording.NEEDED
def test_each_site_is_counted_exactly_when_all_are_recorded(lab):
    found = recorded(lab, KNOWN)
    assert (found["pointer_bytes"], found["every_bytes"], found["recorded"]) == (8, 0, True)
    rows = by_site(found, lab.folder)
    assert rows[("take", "leak")] == row(10, 100, never_freed=10, at_peak=6)
    assert rows[("take", "temporary")] == row(7, 50, temporary=7)
    assert rows[("take", "peak")] == row(5, 10000, at_peak=5)
    grown = rows[("grow",)]
    assert (grown["allocations"], grown["bytes"], grown["temporary"]) == (6, 3 * 2010, 6)
    for key, value in found["totals"].items():
        assert key == "lifetime_us" or sum(stack[key] for stack in found["stacks"]) == value


@recording.NEEDED
def test_a_sample_estimates_what_was_allocated(lab):
    every = 4096
    found = recorded(lab, """
SITE void small(void) { for (int i = 0; i < 100000; ++i) { free(malloc(64)); HERE; } }
SITE void large(void) { for (int i = 0; i < 2000; ++i) { free(malloc(8000)); HERE; } }
int main(void) { small(); large(); HERE; }""", stacks="4K")
    assert found["every_bytes"] == every
    rows = by_site(found, lab.folder)
    for name, count, size in (("small", 100_000, 64), ("large", 2000, 8000)):
        chance = 1 - math.exp(-size / every)
        error = math.sqrt(count * (1 - chance) / chance)
        of_sample = math.sqrt(count * chance * (1 - chance))
        assert abs(rows[(name,)]["allocations"] - count) < 6 * error + 1
        assert abs(rows[(name,)]["bytes"] - count * size) < 6 * error * size + 1
        assert abs(rows[(name,)]["sampled"] - count * chance) < 6 * of_sample
        assert rows[(name,)]["temporary"] == rows[(name,)]["allocations"]
    assert found["totals"]["allocations"] >= 102_000


@recording.NEEDED
def test_what_is_written_is_what_the_page_says(lab):
    done = lab.record(lab.program(SITE + KNOWN, *FLAGS), options=("--stacks", "all"))
    assert done.returncode == 0
    trace = trace_reader.read(lab.trace)
    assert trace.complaints == [] and trace.header.stack_bytes == 0
    functions, program = Functions(str(lab.folder / "program")), str(lab.folder / "program").encode()
    [event] = [event for event in trace.events if event.size == 10000][:1]
    innermost = trace.stack(event.stack)[:2]
    names = [functions.name(trace.modules[module].file_offset + offset) for module, offset in innermost]
    assert names == ["take", "peak"]
    module = trace.modules[innermost[0][0]]
    assert module.path == program and len(module.build_id) == 20
    counted = json.loads(subprocess.run([str(native.program("reheap-trace")), "info", lab.trace], check=True,
                                        capture_output=True, text=True).stdout)
    assert counted["events"] == len(trace.events)


@recording.NEEDED
def test_without_stacks_the_file_is_as_it_always_was(lab):
    trace = lab.recorded("int main(void) { mark(); }")
    assert lab.trace.read_bytes()[8:12] == b"\1\0\0\0"
    assert trace.header.stack_bytes is None and trace.modules == {}
    assert {event.stack for event in trace.events} == {None}
    assert lab.record(str(lab.folder / "program"), options=("--stacks", "1M")).returncode == 0
    assert lab.trace.read_bytes()[8:12] == b"\2\0\0\0"


# ---- threads and processes ----------------------------------------------------------------------

@recording.NEEDED
def test_threads_have_the_stacks_of_their_own(lab):
    found = recorded(lab, """
#define TAKE(number) SITE void take##number(void) { \\
    for (int i = 0; i < 3000; ++i) { free(malloc(100 + 100 * number)); HERE; } }
TAKE(0) TAKE(1) TAKE(2) TAKE(3)
static void *work(void *number) {
  switch ((long)number) { case 0: take0(); break; case 1: take1(); break; case 2: take2(); break; default: take3(); }
  HERE;
  return NULL;
}
int main(void) {
  pthread_t thread[8];
  for (long i = 0; i < 8; ++i) pthread_create(&thread[i], NULL, work, (void *)(i % 4));
  for (int i = 0; i < 8; ++i) pthread_join(thread[i], NULL);
}""")
    rows = by_site(found, lab.folder, outermost="work")
    assert {names: counted["allocations"] for names, counted in rows.items()} == {(f"take{i}",): 6000 for i in range(4)}
    assert all(counted["bytes"] == 6000 * 100 * (int(names[0][-1]) + 1) for names, counted in rows.items())


@recording.NEEDED
def test_a_killed_process_leaves_stacks_that_are_whole(lab):
    done = lab.record(lab.program(SITE + """
SITE void deep(int depth) { if (depth) deep(depth - 1); else free(malloc(200)); HERE; }
static void *work(void *none) { for (unsigned i = 0;; ++i) deep(i % 50); }
int main(void) {
  pthread_t thread;
  for (int i = 0; i < 3; ++i) pthread_create(&thread, NULL, work, NULL);
  usleep(30000);
  kill(getpid(), SIGKILL);
}""", *FLAGS), options=("--stacks", "all"))
    assert done.returncode == -signal.SIGKILL
    trace = trace_reader.read(lab.trace)
    used = {event.stack for event in trace.events if event.size == 200}
    assert trace.complaints == [] and None not in used
    for number in used:
        assert {module for module, _ in trace.stack(number)} <= trace.modules.keys()


@recording.NEEDED
def test_children_know_their_own_stacks(lab):
    program = lab.program(SITE + """
SITE void before(void) { free(malloc(1000)); HERE; }
SITE void in_child(void) { free(malloc(2000)); HERE; }
SITE void in_new_program(void) { free(malloc(3000)); HERE; }
int main(int count, char **words) {
  if (count > 1) { in_new_program(); return 0; }
  before();
  if (fork() == 0) { before(); in_child(); execl(words[0], words[0], "again", NULL); }
  wait(NULL);
}""", *FLAGS)
    assert lab.record(program, options=("--stacks", "all")).returncode == 0
    paths = record.traces(lab.trace)
    assert len(paths) == 3
    each = [{names: counted["allocations"] for names, counted in by_site(sites(path), lab.folder).items()}
            for path in paths]
    assert sorted(each, key=len) == sorted([{("before",): 1}, {("before",): 1, ("in_child",): 1},
                                            {("in_new_program",): 1}], key=len)
    together = sites(*paths)
    assert [module["path"] for module in together["modules"]].count(program) == 1
    assert by_site(together, lab.folder)[("before",)]["allocations"] == 2


# ---- code of every kind -------------------------------------------------------------------------

@recording.NEEDED
def test_a_library_in_the_place_of_an_unloaded_one_keeps_its_name(lab):
    libraries = [lab.build(f"lib{name}.so", SITE + f"""
#include <stdlib.h>
SITE void in_{name}(void) {{ free(malloc(300)); HERE; }}
void run(void) {{ in_{name}(); HERE; }}""", "-shared", "-fPIC", *FLAGS) for name in ("one", "two")]
    done = lab.record(lab.program(SITE + """
#include <dlfcn.h>
int main(int count, char **words) {
  for (int round = 0; round < 6; ++round) {
    void *library = dlopen(words[1 + round % 2], RTLD_NOW);
    void *run = dlsym(library, "run");
    ((void (*)(void))run)();
    printf("%p\\n", run);
    dlclose(library);
  }
}""", *FLAGS), *libraries, options=("--stacks", "all"))
    assert done.returncode == 0
    assert len(set(done.stdout.split())) == 1, "they came to different places, so that this shows nothing"
    found = sites(lab.trace)
    rows = by_site(found, lab.folder)
    assert {names: rows[names]["allocations"] for names in rows if names[-1:] == ("run",)} == {
        ("in_one", "run"): 3, ("in_two", "run"): 3}
    ranges = sorted((int(module["start"], 16), int(module["end"], 16)) for module in found["modules"])
    assert all(end <= start for (_, end), (start, _) in zip(ranges, ranges[1:], strict=False))


@recording.NEEDED
def test_a_handler_of_a_signal_stands_on_what_it_interrupted(lab):
    found = recorded(lab, """
SITE void handler(int number) { void *p = memalign(32, 48); HERE; (void)p; }
SITE void raising(void) { raise(SIGUSR1); HERE; }
int main(void) {
  static char other[65536];
  stack_t alternate = {.ss_sp = other, .ss_size = sizeof other};
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &action, NULL);
  raising();
  sigaltstack(&alternate, NULL);
  raising();
}""")
    handled = {names: counted for names, counted in named(found, lab.folder).items() if names[0] == "handler"}
    assert sum(counted["allocations"] for counted in handled.values()) == 2
    for names in handled:
        assert names.index("handler") < names.index("raising") < names.index("main")


@recording.NEEDED
def test_a_coroutine_has_a_stack_too(lab):
    found = recorded(lab, """
#include <ucontext.h>
static ucontext_t caller, other;
SITE void work(void) { for (int i = 0; i < 100; ++i) { free(malloc(70)); HERE; } }
static void begin(void) { work(); HERE; }
int main(void) {
  getcontext(&other);
  other.uc_stack.ss_sp = malloc(65536);
  other.uc_stack.ss_size = 65536;
  other.uc_link = &caller;
  makecontext(&other, begin, 0);
  swapcontext(&caller, &other);
}""")
    assert by_site(found, lab.folder, outermost="begin")[("work",)]["allocations"] == 100


@recording.NEEDED
def test_of_a_deep_recursion_the_innermost_frames_are_kept(lab):
    found = recorded(lab, """
SITE void deep(int depth) { if (depth) deep(depth - 1); else free(malloc(900)); HERE; }
int main(void) { deep(10000); deep(100); HERE; }""")
    frames = sorted(len(stack["frames"]) for stack in found["stacks"] if stack["bytes"] == 900)
    assert len(frames) == 2 and 101 < frames[0] < 110 and frames[1] == 256


# Each calls what it is given. `lie` says of its frame what is not so.
ASSEMBLY = """
#define CALLER(name, lie) __asm__(".text\\n.globl " #name "\\n.type " #name ",@function\\n" #name ":\\n" lie \\
  "sub $8, %rsp\\ncall *%rdi\\nadd $8, %rsp\\nret\\n.size " #name ",.-" #name "\\n"); void name(void (*)(void))
#define LIAR(name, lie) CALLER(name, ".cfi_startproc\\n" lie "\\n"); __asm__(".cfi_endproc")
CALLER(bare, "");
LIAR(far_away, ".cfi_def_cfa rsp, 0x7fffff0");
LIAR(far_below, ".cfi_def_cfa rsp, -0x7fffff0");
LIAR(odd, ".cfi_def_cfa rsp, 13");
LIAR(no_register, ".cfi_def_cfa rbx, 16");
LIAR(unknown, ".cfi_escape 0x16, 6, 1, 0x96");
LIAR(expression, ".cfi_escape 0x0f, 3, 0x77, 0x08, 0x06");
LIAR(nested, ".cfi_remember_state\\n.cfi_remember_state\\n.cfi_restore_state");
LIAR(lost_pointer, ".cfi_undefined rbp");
LIAR(wild_pointer, ".cfi_offset rbp, -800");
LIAR(signal_frame, ".cfi_signal_frame");
LIAR(self, ".cfi_def_cfa rsp, 0");
SITE void take(void) { free(malloc(40)); HERE; }
int main(void) {
  void (*each[])(void (*)(void)) = {bare, far_away, far_below, odd, no_register, unknown, expression, nested,
                                    lost_pointer, wild_pointer, signal_frame, self};
  for (int i = 0; i < sizeof each / sizeof *each; ++i) { each[i](take); HERE; }
}"""


@recording.NEEDED
def test_code_without_tables_or_with_wrong_ones_does_no_harm(lab):
    found = recorded(lab, ASSEMBLY)
    taken = {names[1]: counted for names, counted in named(found, lab.folder).items() if names[0] == "take"}
    assert len(taken) == 12 and all(counted["allocations"] == 1 for counted in taken.values())


@recording.NEEDED
@pytest.mark.parametrize("section", [".eh_frame", ".eh_frame_hdr"])
def test_tables_of_garbage_do_no_harm(lab, section):
    program = pathlib.Path(lab.program(SITE + KNOWN, *FLAGS))
    listed = subprocess.run(["readelf", "-SW", program], check=True, capture_output=True, text=True).stdout
    at, size = (int(digits, 16) for digits in
                re.search(rf"{re.escape(section)} +\w+ +\w+ +(\w+) +(\w+)", listed).groups())
    chance, broken = random.Random(1), lab.folder / "broken"
    for _ in range(5):
        data = bytearray(program.read_bytes())
        for place in range(at, at + size):
            if chance.random() < 0.3:
                data[place] = chance.randrange(256)
        broken.write_bytes(data)
        broken.chmod(0o755)
        done = lab.record(str(broken), options=("--stacks", "all"))
        assert done.returncode == 0, done.stderr
        found = sites(lab.trace)
        assert sum(stack["sampled"] for stack in found["stacks"]) == found["totals"]["allocations"]


@recording.NEEDED
def test_code_made_by_the_program_is_walked_by_its_frame_pointer(lab):
    found = recorded(lab, """
#include <sys/mman.h>
static const unsigned char kCode[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3}; /* push, mov, call, pop, ret */
SITE void take(void) { free(malloc(60)); HERE; }
int main(void) {
  void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(code, kCode, sizeof kCode);
  ((void (*)(void (*)(void)))code)(take);
  HERE;
}""")
    assert by_site(found, lab.folder)[("take", "")]["allocations"] == 1


# ---- the tools ----------------------------------------------------------------------------------

def two_processes(folder: pathlib.Path) -> list[pathlib.Path]:
    """The same library in both, at unlike places; in the second, what had been there was another one."""
    paths = []
    for process, start in ((100, 0x7000_0000), (200, 0x9000_0000)):
        writer = trace_writing.TraceWriter(process=process)
        writer.stacks(1000)
        if process == 200:
            writer.module(1, 0, start, 0x1000, 0, b"", b"/old.so")
            writer.frame(1, 2, 1, 0, 0x500)
            writer.malloc(1, 50, 0x9000, 10**6, stack=2)
        writer.module(1, 1, start, 0x1000, 0x3000, b"\1\2\xff", b"/a\\012b/lib.so")
        writer.frame(1, 3, 1, 1, 0x100)
        writer.frame(1, 4, 3, 1, 0x200)
        writer.malloc(1, 100, 0x1000, 500, stack=4)
        writer.malloc(1, 200, 0x2000, 700)
        writer.malloc(1, 300, 0x3000, 10, stack=1)
        writer.free(1, 400, 0x1000)
        paths.append(writer.write(folder / f"{process}.rht"))
    return paths


def test_the_same_code_of_two_processes_is_one_place(tmp_path):
    found = sites(*two_processes(tmp_path))
    assert (found["recorded"], found["every_bytes"]) == (True, 1000)
    modules = {module["path"]: module for module in found["modules"]}
    assert modules["/a\nb/lib.so"] == {"path": "/a\nb/lib.so", "start": "0x70000000", "end": "0x70001000",
                                  "file_offset": "0x3000", "build_id": "0102ff"}
    stacks = {tuple(found["frames"][frame] for frame in stack["frames"]): stack for stack in found["stacks"]}
    assert stacks.keys() == {("0x70000200", "0x70000100"), ("0x90000500",), ()}
    both = stacks["0x70000200", "0x70000100"]
    weight = 1 / (1 - math.exp(-0.5))
    assert (both["sampled"], both["never_freed"], both["temporary"]) == (2, 0, 0)
    assert both["allocations"] == round(2 * weight) and both["bytes"] == round(2 * weight * 500)
    assert both["lifetime_us"] == pytest.approx(0.3)
    assert stacks[()]["allocations"] == round(2 / (1 - math.exp(-0.01)))
    assert (found["totals"]["allocations"], found["totals"]["sampled"]) == (7, 5)
    assert found["totals"]["bytes"] == 2 * 1210 + 10**6


def test_a_module_where_another_one_was_is_moved(tmp_path):
    found = sites(two_processes(tmp_path)[1])
    modules = {module["path"]: int(module["start"], 16) for module in found["modules"]}
    assert modules == {"/old.so": 0x9000_0000, "/a\nb/lib.so": 1 << 60}
    assert set(found["frames"]) == {"0x90000500", "0x1000000000000100", "0x1000000000000200"}


def test_a_trace_without_stacks_has_totals_alone(tmp_path):
    writer = trace_writing.TraceWriter()
    writer.malloc(1, 100, 0x1000, 40)
    writer.free(1, 3100, 0x1000)
    writer.malloc(1, 4000, 0x1000, 50)
    writer.malloc(1, 5000, 0x2000, 0)
    writer.free(2, 6000, 0x2000)
    found = sites(writer.write(tmp_path / "t"))
    assert (found["recorded"], found["stacks"], found["modules"], found["frames"]) == (False, [], [], [])
    assert found["totals"] == {"sampled": 0, "allocations": 3, "bytes": 90, "never_freed": 1, "never_freed_bytes": 50,
                               "at_peak": 1, "at_peak_bytes": 50, "temporary": 1, "temporary_bytes": 40,
                               "lifetime_us": 2.0}


def test_the_other_tools_read_past_stacks(tmp_path):
    paths = two_processes(tmp_path)
    tool = str(native.program("reheap-trace"))
    for words in (["info", paths[0]], ["export", paths[0]], ["compile", paths[0], "-o", tmp_path / "c"],
                  ["cut", paths[0], "-o", tmp_path / "part"], ["merge", *paths, "-o", tmp_path / "both"]):
        done = subprocess.run([tool, *map(str, words)], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    for name, events in (("part", 4), ("both", 9)):
        whole = trace_reader.read(tmp_path / name)
        assert len(whole.events) == events and whole.header.stack_bytes is None and whole.modules == {}
        assert {event.stack for event in whole.events} == {None}


def test_damaged_stacks_never_break_the_reader(tmp_path):
    whole, chance = two_processes(tmp_path)[1].read_bytes(), random.Random(5)
    for _ in range(60):
        data = bytearray(whole)
        data[4096 + 4] = 1  # open: without a checksum
        for _ in range(4):
            data[4096 + 64 + chance.randrange(110)] = chance.randrange(256)
        (tmp_path / "t").write_bytes(data)
        done = subprocess.run([str(native.program("reheap-trace")), "sites", tmp_path / "t"], capture_output=True)
        assert done.returncode in (0, 3)
        json.loads(done.stdout.decode(errors="replace"))


@recording.NEEDED
@pytest.mark.parametrize(("stacks", "says"), [("0", "is no size"), ("some", "is no size"), ("2G", "1G or less")])
def test_what_is_no_measure_of_stacks_is_refused(lab, stacks, says):
    done = lab.record("true", options=("--stacks", stacks))
    assert done.returncode == 2 and says in done.stderr
    assert not lab.trace.exists()
