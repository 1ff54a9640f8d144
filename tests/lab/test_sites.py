"""Who allocates: from what reheap-trace prints, made up here for a real program, to names, figures and files."""

import collections
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import types

import numpy as np
import pytest
from click.testing import CliRunner
from test_report import HOSTILE, Page

from reheap_lab import cli_trace, native, trace
from reheap_lab.errors import UsageError
from reheap_lab.report import sites_page
from reheap_lab.sites import findings, functions, groups, images, profile, symbols, tree
from reheap_lab.sites.export import writers
from reheap_lab.sites.kinds import FIGURES, KINDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the program is one of Linux")

# xmalloc stands in for the recorder: it prints its callers. What is about a line is told by the mark on it.
PROGRAM = """
#include <execinfo.h>
#include <stdio.h>
#include <string.h>
extern "C" __attribute__((noinline)) void xmalloc() {
  void *frames[20];
  int count = backtrace(frames, 20);
  for (int i = 0; i < count; i++) printf("%p ", frames[i]);
  puts("");
}
inline __attribute__((always_inline)) void inlined() { xmalloc(); /* inlined */ }
template <class T> __attribute__((noinline)) void box(T) { inlined(); /* box */ asm(""); }
__attribute__((noinline)) void churn(const char *) { xmalloc(); /* churn */ asm(""); }
extern "C" __attribute__((noinline)) void my_alloc() { xmalloc(); asm(""); }
int main() {
  box(3); /* main box */
  churn("x"); /* main churn */
  my_alloc(); /* main my */
  char line[500];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps)) printf("map %s", line);
}
"""
LINES = {mark: number for number, text in enumerate(PROGRAM.splitlines(), 1)
         for mark in re.findall(r"/\* ([a-z ]+) \*/", text)}
STACKS = ("box", "churn", "my")  # in the order in which the program prints them


class Made:
    """The program, and what reheap-trace might say of a run of it."""

    def __init__(self, folder: pathlib.Path, *options: str):
        folder.mkdir(exist_ok=True)
        self.program = folder / "a program"
        (folder / "source.cpp").write_text(PROGRAM)
        subprocess.run(["c++", "-O1", "-g", "-no-pie" if "-no-pie" in options else "-pie", "-fPIE", *options,
                        "-o", self.program, folder / "source.cpp"], check=True)
        printed = subprocess.run([self.program], capture_output=True, text=True, check=True).stdout.splitlines()
        self.frames = [line.split() for line in printed if line.startswith("0x")]
        self.maps = [re.fullmatch(r"map (\S+)-(\S+) (\S+) (\S+) \S+ \S+ +(/.*)", line) for line in printed]
        self.maps = [(*match.groups()[:-1], match.group(5).replace("\\012", "\n")) for match in self.maps if match]

    def said(self, apart: bool = False, **rows: dict) -> dict:
        """Its JSON: `rows` has each stack's figures. With `apart` each mapping is a module of its own."""
        modules = {}
        for start, end, _, offset, path in self.maps:
            one = modules.setdefault((path, start if apart else ""), [start, end, offset])
            one[1] = end
        frames = list(dict.fromkeys(frame for frames in self.frames for frame in frames))
        stacks = [{"frames": [frames.index(f) for f in self.frames[STACKS.index(name)]],
                   "sampled": row.get("sampled", row["allocations"]), **dict.fromkeys(FIGURES, 0), **row}
                  for name, row in rows.items()]
        described = [{"path": path, "start": "0x" + start, "end": "0x" + end, "file_offset": "0x" + offset,
                      "build_id": build_id(path)}
                     for (path, _), (start, end, offset) in modules.items()]
        return {"pointer_bytes": 8, "every_bytes": 0, "recorded": True, "frames": frames, "stacks": stacks,
                "totals": {name: sum(stack[name] for stack in stacks) for name in FIGURES},
                "modules": described}


def build_id(path: str) -> str:
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
    found = re.search(r"Build ID: (\w+)", notes)
    return found.group(1) if found else ""


ROWS = {"box": {"allocations": 700, "bytes": 7_000_000, "at_peak": 500, "at_peak_bytes": 5_000_000, "never_freed": 100,
                "never_freed_bytes": 1_000_000, "lifetime_us": 2_000_000},
        "churn": {"allocations": 300, "bytes": 3000, "temporary": 297, "temporary_bytes": 2970, "lifetime_us": 1}}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    return Made(tmp_path_factory.mktemp("made"))


@pytest.fixture
def load(tmp_path):
    """From what was said to a profile."""
    file = tmp_path / "t.rht"
    file.write_bytes(b"")

    def loaded(said: dict, **more) -> profile.Profile:
        return profile.load(said, [file], **more)
    return loaded


@pytest.fixture
def sites(tmp_path, monkeypatch):
    """Runs `reheap trace sites` on what a made-up reheap-trace says."""
    tool = tmp_path / "native" / "bin" / "reheap-trace"
    tool.parent.mkdir(parents=True)
    monkeypatch.setenv(native.VARIABLE, str(tmp_path / "native"))
    file = tmp_path / "t.rht"
    file.write_bytes(b"")

    def run(said: dict, *words: str, status: int = 0):
        (tmp_path / "said.json").write_text(json.dumps(said))
        tool.write_text(f'#!/bin/sh\n[ "$1" = sites ] && cat "{tmp_path}/said.json"\nexit {status}\n')
        tool.chmod(0o755)
        return CliRunner().invoke(cli_trace.command, ["sites", str(file), *words])
    return run


def names(found: profile.Profile, stack: int = 0) -> list[str]:
    return [place.said for place in found.stacks[stack].places]


# ---- names ------------------------------------------------------------------------------------

BOX = [f"inlined (source.cpp:{LINES['inlined']})", f"box (source.cpp:{LINES['box']})",
       f"main (source.cpp:{LINES['main box']})"]


@pytest.mark.parametrize("apart", [False, True], ids=["whole modules", "each mapping"])
def test_lines_and_inlined_functions_from_the_allocation_to_main(made, load, apart):
    found = load(made.said(apart, **ROWS))
    assert names(found) == BOX
    assert names(found, 1) == [f"churn (source.cpp:{LINES['churn']})", f"main (source.cpp:{LINES['main churn']})"]
    assert "void box<int>(int)" in [place.function for place in found.stacks[0].places]
    assert found.notes == []


@pytest.mark.parametrize("tool", ["llvm-symbolizer", "addr2line"])
def test_each_tool_says_the_same(made, load, tmp_path, monkeypatch, tool):
    said = made.said(**ROWS)
    only(monkeypatch, tmp_path, tool, "c++filt")
    assert names(load(said)) == BOX


def only(monkeypatch, folder: pathlib.Path, *tools: str) -> None:
    """Nothing else is on PATH."""
    (folder / "tools").mkdir()
    for tool in tools:
        there = shutil.which(tool)
        if there is None:
            pytest.skip(f"there is no {tool} here")
        (folder / "tools" / tool).symlink_to(there)
    monkeypatch.setenv("PATH", str(folder / "tools"))


def test_without_tools_symbols_are_left(made, load, tmp_path, monkeypatch):
    said = made.said(**ROWS)
    only(monkeypatch, tmp_path)
    assert names(load(said)) == ["_Z3boxIiEvT_ (a program)", "main (a program)"]


def test_a_stripped_program_has_its_lines_from_the_file_beside_it(tmp_path, load):
    made = Made(tmp_path / "p")
    debug = made.program.parent / ".debug" / "a.debug"
    debug.parent.mkdir()
    subprocess.run(["objcopy", "--only-keep-debug", made.program, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", made.program], check=True)
    assert names(load(made.said(**ROWS))) == BOX
    other = Made(tmp_path / "other", "-DOTHER=1", "-O0")
    subprocess.run(["objcopy", "--only-keep-debug", other.program, debug], check=True)
    assert names(load(made.said(**ROWS)))[0].startswith("a program+0x")  # the file is another program's


def test_a_stripped_program_is_told_by_the_starts_of_its_functions(tmp_path, load):
    made = Made(tmp_path / "p", "-s")
    found = load(made.said(**ROWS))
    assert found.notes == ["no names of a program: it has been stripped of its symbols, and no debug information is "
                           "installed"]
    inner, outer = names(found)[-2:]
    assert inner != outer and outer == names(found, 1)[-1]  # main, from two of its lines
    assert all(re.fullmatch(r"a program\+0x[0-9a-f]+", name) for name in names(found))


@pytest.mark.parametrize("has_build_id", [True, False])
def test_a_program_built_anew_is_told_and_not_misnamed(tmp_path, load, has_build_id):
    option = f"-Wl,--build-id={'sha1' if has_build_id else 'none'}"
    made = Made(tmp_path / "p", option)
    said = made.said(**ROWS)
    Made(tmp_path / "p", option, "-O0")
    os.utime(made.program, (4e9, 4e9))
    found = load(said)
    assert all(name.startswith("a program+0x") for name in names(found))
    assert "no names of a program: its file has changed since the recording" in found.notes
    made.program.unlink()
    assert "no names of a program: its file is gone" in load(said).notes
    made.program.write_bytes(b"\x7fELF" + bytes(range(200)))
    assert any("damaged" in note for note in load(said).notes)


def test_files_are_looked_for_below_the_sysroot(made, load, tmp_path):
    said = made.said(**ROWS)
    moved = tmp_path / "root" / "moved" / "program"
    moved.parent.mkdir(parents=True)
    shutil.copy(made.program, moved)
    for module in said["modules"]:
        module["path"] = module["path"].replace(str(made.program), "/moved/program")
    assert names(load(said, sysroot=tmp_path / "root")) == BOX


def test_wrappers_of_the_program_are_no_sites(made, load):
    said = made.said(my={"allocations": 1, "bytes": 8})
    assert load(said).stacks[0].at.function == "my_alloc"
    assert load(said, wrappers=("my_*",)).stacks[0].at.said == f"main (source.cpp:{LINES['main my']})"


def test_code_of_no_file_is_told_by_its_addresses(made, load):
    said = made.said(**ROWS)
    for modules in ([], [module | {"path": "", "build_id": ""} for module in said["modules"]]):
        assert all(name.startswith("0x") for name in names(load(said | {"modules": modules})))


def test_odd_folders_and_what_was_deleted_meanwhile(tmp_path, load):
    made = Made(tmp_path / "p\nq")
    said = made.said(**ROWS)
    assert names(load(said)) == BOX
    assert load(said).stacks[0].at.file == str(tmp_path / "p\nq" / "source.cpp")
    for module in said["modules"]:
        module["path"] += " (deleted)"
    assert names(load(said)) == BOX  # another one of the same build id is at its place
    for module in said["modules"]:
        module["path"] = module["path"].replace("\n", r"\012")  # as the kernel lists it
    assert names(load(said)) == BOX


def test_names_stay_on_their_line(made, load, tmp_path):
    said = made.said(**ROWS)
    for module in said["modules"]:
        module["path"] = "/gone/a\nb\x1b[1m"
    found = load(said)
    assert names(found)[-1].startswith("a?b?[1m+0x")
    writers("bytes")[".folded"](found, tmp_path / "t.folded")
    assert len((tmp_path / "t.folded").read_text().splitlines()) == 2


def test_two_segments_in_one_page_are_told_apart_by_the_mapping():
    """As LLD lays files out: what is mapped from offset 0x7000 may be the end of one or the beginning of the next."""
    loads = [{"p_offset": 0, "p_vaddr": 0, "p_filesz": 0x7b48, "p_memsz": 0x7b48},
             {"p_offset": 0x7b50, "p_vaddr": 0x8b50, "p_filesz": 0x13020, "p_memsz": 0x13020},
             {"p_offset": 0x1ab70, "p_vaddr": 0x1cb70, "p_filesz": 0x4b0, "p_memsz": 0x1490}]
    elf = types.SimpleNamespace(iter_segments=lambda kind: [
        types.SimpleNamespace(header=types.SimpleNamespace(**load)) for load in loads])
    for file_offset, length, begins in ((0, 0x8000, 0), (0x7000, 0x14000, 0x8000), (0x1a000, 0x3000, 0x1c000),
                                        (0x9000, 0x1000, 0xa000)):
        module = images.Module("/p", 0x500000, 0x500000 + length, file_offset, "")
        assert images._address_of_start(module, elf) == begins


def test_a_stack_that_nobody_knows_keeps_its_figures(made, load):
    said = made.said(**ROWS)
    said["stacks"][1]["frames"] = []
    found = load(said)
    assert names(found, 1) == ["(no call stack)"] and found.values[1, 0] == 300
    assert "(no call stack)" in sites_page.html(found, "allocations")


@pytest.mark.parametrize("name, short", [
    ("void std::vector<int, A<b> >::f<x>(int) const", "std::vector::f"),
    ("operator new[](unsigned long)", "operator new[]"),
    ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()"),
    ("<T as alloc::X>::clone", "<T as alloc::X>::clone"),
    ("(anonymous namespace)::g(std::function<void (int)>)", "(anonymous namespace)::g"),
    ("std::ostream& std::operator<< <char>(std::ostream&, char const*)", "std::operator<<"),
    ("std::string[abi:cxx11] f[abi:cxx11](int) [clone .cold]", "f"),
    ("a::operator-><x>(int)", "a::operator->"), ("A::operator bool() const", "A::operator bool"),
    ("alloc::raw_vec::RawVec<T,A>::reserve", "alloc::raw_vec::RawVec::reserve"),
    ("int (*f<int>(char))(long)", "int (*f<int>(char))(long)"), ("f(int (*)(long)) const &", "f"), ("main", "main")])
def test_names_in_short(name, short):
    assert functions.short(name) == short


@pytest.mark.parametrize("name, passes", [
    ("malloc", True), ("__libc_calloc", True), ("operator new(unsigned long)", True), ("posix_memalign", True),
    ("std::__new_allocator<int>::allocate(unsigned long, void const*)", True), ("g_malloc0", True), ("xrealloc", True),
    ("<alloc::alloc::Global as core::alloc::Allocator>::allocate", True), ("<alloc::alloc::Global>::alloc_impl", True),
    ("__rust_alloc", True),
    ("std::vector<int, std::allocator<int> >::push_back(int)", False), ("malloc_consolidate", False),
    ("strdup", False), ("my::allocator<int>::allocate(unsigned long)", False), ("allocate", False)])
def test_what_only_passes_allocations_on(name, passes):
    assert functions.Passing()(name, "/bin/program") is passes


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="there is no c++filt here")
def test_names_of_rust_are_without_their_hashes():
    names = {"_RNvCs4fqI2P2rA04_1r5build": "r::build", "_ZN1r5build17h0123456789abcdefE": "r::build",
             "_ZN1a1bEi": "a::b(int)", "_Zbroken": "_Zbroken", "main": "main"}
    assert symbols.demangle(set(names)) == names


@pytest.mark.parametrize("function, mangled, module, library", [
    ("<T as alloc::vec::spec_from_elem::SpecFromElem>::from_elem", "_ZN1", "/bin/r", True),
    ("<i32 as core::fmt::Display>::fmt", "_ZN1", "/bin/r", True),
    ("<&dyn core::ops::function::Fn<()> as core::ops::function::FnOnce<()>>::call_once", "_RN", "/bin/r", True),
    ("<r::Mine as core::clone::Clone>::clone", "_ZN1", "/bin/r", False),
    ("void std::vector<int>::push_back(int)", "_ZNSt6vectorIiE9push_backEi", "/bin/p", True),
    ("qsort_r", "qsort_r", "/lib/libc.so.6", True), ("inflate", "inflate", "/lib/libcurl.so.4", False)])
def test_what_belongs_to_a_standard_library(function, mangled, module, library):
    assert functions.is_library(function, mangled, module) is library


# ---- figures ----------------------------------------------------------------------------------

def test_findings_name_what_is_freed_at_once_and_what_never_is(made, load):
    assert findings.sentences(load(made.said(**ROWS))) == [
        f"churn (source.cpp:{LINES['churn']}) makes 30 % of all allocations and frees each at once: before the "
        "thread's next call",
        f"inlined (source.cpp:{LINES['inlined']}) allocated 100 % of what was never freed: 977 KiB in 100 blocks"]
    rows = {"box": ROWS["box"], "churn": ROWS["churn"] | {"temporary": 0, "lifetime_us": 40}}
    assert findings.sentences(load(made.said(**rows)))[0].endswith(
        "makes 30 % of all allocations, which live 40 µs on average")


def test_nothing_is_found_where_nothing_stands_out_or_is_sure(made, load):
    quiet = {"box": {"allocations": 500, "bytes": 9000, "lifetime_us": 1e6},
             "churn": {"allocations": 9, "bytes": 90, "temporary": 9}}
    assert findings.sentences(load(made.said(**quiet))) == []
    few = made.said(churn=ROWS["churn"] | {"sampled": 3}) | {"every_bytes": 65536}
    assert findings.sentences(load(few)) == []


def test_the_errors_are_those_that_sampling_has(made, load):
    """Small blocks and large ones in a site each, and in one together, sampled 500 times as a recorder does it."""
    random, every = np.random.default_rng(5), 4096
    counts, sizes = np.array([3000, 200]), np.array([300, 6000])
    chances = 1 - np.exp(-sizes / every)
    found = load(made.said(box=ROWS["box"], churn=ROWS["churn"]) | {"every_bytes": every})
    estimates, told = collections.defaultdict(list), collections.defaultdict(list)
    for _ in range(500):
        found.sampled = np.maximum(random.binomial(counts, chances), 1).astype(float)
        found.values[:, 0] = found.sampled / chances
        found.values[:, 1] = found.values[:, 0] * sizes
        found.__dict__.pop("variances", None)
        for group in [*groups.by_site(found), *groups.by_module(found)]:
            for figure in ("allocations", "bytes"):
                estimates[group.key, figure].append(group.figures[figure])
                told[group.key, figure].append(group.errors[figure])
    assert len(estimates) == 6
    for key, values in estimates.items():
        assert np.std(values) / np.mean(values) == pytest.approx(np.mean(told[key]), rel=0.12), key


def test_exact_figures_have_no_error(made, load):
    assert all(error == 0 for site in groups.by_site(load(made.said(**ROWS))) for error in site.errors.values())


# ---- on the terminal --------------------------------------------------------------------------

def test_it_shows_the_summary_the_sites_and_their_callers(made, sites):
    shown = sites(made.said(**ROWS))
    assert shown.exit_code == 0, shown.output
    for said in ("allocations 1,000 6.68 MiB in all", "temporary 297 29.7 % of them", "peak 4.77 MiB in 500 blocks",
                 "never freed 977 KiB in 100 blocks", "Each allocation has its call stack; 2 are different.",
                 f"70 % 700 {BOX[0]} from {BOX[1]} ← {BOX[2]}", "• churn (source.cpp", "LIVE AT THE PEAK"):
        assert said in re.sub(r"\s+", " ", shown.output), said
    assert "±" not in shown.output and "leak" not in shown.output.lower()
    one = sites(made.said(**ROWS), "--by", "never-freed", "--top", "1").output
    assert "NEVER FREED" in one and "LIVE AT THE PEAK" not in one


def test_estimates_are_told_as_such(made, sites):
    shown = sites(made.said(box=ROWS["box"] | {"sampled": 100}) | {"every_bytes": 65536}).output
    assert "estimates from 100 samples, one for\neach 64 KiB allocated; ± is their relative standard error" in shown
    assert "±9.3 %" in shown  # of 700 blocks, each sample for 7


def test_a_trace_without_stacks_says_how_to_get_them(made, sites):
    done = sites(made.said() | {"recorded": False, "modules": [], "frames": []})
    assert isinstance(done.exception, UsageError)
    assert "recorded without call stacks: record again with --stacks 64K" in str(done.exception)


def test_a_damaged_trace_is_shown_as_far_as_it_goes(made, sites):
    assert sites(made.said(**ROWS), status=3).exit_code == 3


def test_a_trace_in_which_nothing_was_sampled(made, sites, tmp_path):
    exports = ("--export", str(tmp_path / "t.html"), "--export", str(tmp_path / "t.pb.gz"))
    said = made.said() | {"every_bytes": 65536}
    assert "There is no allocation in it" in sites(said, *exports).output
    said["totals"]["allocations"] = 3
    assert "no allocation was sampled" in sites(said, *exports).output


def test_a_file_that_cannot_be_written_costs_no_other(made, sites, tmp_path):
    bad, good = tmp_path / "full.json", tmp_path / "good.folded"
    bad.symlink_to("/dev/full")
    done = sites(made.said(**ROWS), "--export", str(bad), "--export", str(good))
    assert "full.json cannot be written" in str(done.exception) and good.stat().st_size
    assert "ALLOCATIONS" in done.output


@pytest.mark.parametrize("name, says", [("t.pdf", "the file's ending"), ("no/t.html", "there is no folder")])
def test_an_export_is_checked_before_anything_runs(made, sites, tmp_path, name, says):
    done = sites({}, "--export", str(tmp_path / name))
    assert isinstance(done.exception, UsageError) and says in str(done.exception)


# ---- files ------------------------------------------------------------------------------------

def decode(data: bytes) -> dict[int, list]:
    """A message of protocol buffers: its fields' values by number."""
    found, place = collections.defaultdict(list), 0

    def number() -> int:
        nonlocal place
        value = shift = 0
        while True:
            value |= (data[place] & 127) << shift
            shift, place = shift + 7, place + 1
            if data[place - 1] < 128:
                return value
    while place < len(data):
        key = number()
        if key & 7 == 0:
            found[key >> 3].append(number())
        else:
            assert key & 7 == 2
            length = number()
            found[key >> 3].append(data[place:place + length])
            place += length
    return found


def numbers(packed: bytes) -> list[int]:
    found, value, shift = [], 0, 0
    for byte in packed:
        value, shift = value | (byte & 127) << shift, shift + 7
        if byte < 128:
            found.append(value)
            value = shift = 0
    return found


def test_pprof_reads_back(made, load, tmp_path):
    said = made.said(**ROWS)
    writers(None)[".pb.gz"](load(said), tmp_path / "t.pb.gz")
    whole = decode(gzip.decompress((tmp_path / "t.pb.gz").read_bytes()))
    text = [string.decode() for string in whole[6]]
    types = [(text[t[1][0]], text[t[2][0]]) for t in map(decode, whole[1])]
    assert text[0] == "" and ("alloc_objects", "count") in types and ("peak_space", "bytes") in types
    defined = {f[1][0]: (text[f[2][0]], pathlib.Path(text[f[4][0]]).name) for f in map(decode, whole[5])}
    locations = {place[1][0]: place for place in map(decode, whole[4])}
    sample = decode(whole[2][0])
    values = dict(zip([name for name, _ in types], numbers(sample[2][0])))
    assert values == {"alloc_objects": 700, "alloc_space": 7_000_000, "inuse_objects": 100, "inuse_space": 1_000_000,
                      "peak_objects": 500, "peak_space": 5_000_000, "temporary_objects": 0, "temporary_space": 0}
    lines = [(*defined[line[1][0]], line[2][0]) for at in numbers(sample[1][0])
             for line in map(decode, locations[at][4])]
    assert lines == [("inlined", "source.cpp", LINES["inlined"]), ("box", "source.cpp", LINES["box"]),
                     ("main", "source.cpp", LINES["main box"])]
    maps = {m[1][0]: m for m in map(decode, whole[3])}
    mapping = maps[locations[numbers(sample[1][0])[0]][2][0]]
    assert text[mapping[5][0]] == str(made.program) and text[mapping[6][0]] == build_id(str(made.program))
    assert mapping[2][0] <= locations[numbers(sample[1][0])[0]][3][0] < mapping[3][0] and mapping[7] == [1]
    assert whole[12] == [1] and text[whole[14][0]] == "peak_space"


@pytest.mark.skipif(shutil.which("go") is None, reason="there is no go here")
def test_go_reads_the_pprof(made, load, tmp_path):
    writers(None)[".pb.gz"](load(made.said(**ROWS)), tmp_path / "t.pb.gz")
    done = subprocess.run(["go", "tool", "pprof", "-top", "-sample_index=alloc_objects", tmp_path / "t.pb.gz"],
                          capture_output=True, text=True)
    assert re.search(r"700 70\.00% .* inlined", done.stdout), done.stdout + done.stderr
    assert re.search(r" 1000 +100% +main", done.stdout)


def test_folded_stacks_weigh_what_was_asked_for(made, load, tmp_path):
    for by, said in (("allocations", "main;box;inlined 700\nmain;churn 300\n"),
                     (None, "main;box;inlined 5000000\n")):
        writers(by)[".folded"](load(made.said(**ROWS)), tmp_path / "t.folded")
        assert (tmp_path / "t.folded").read_text() == said


def test_json_has_everything(made, load, tmp_path):
    writers(None)[".json"](load(made.said(**ROWS)), tmp_path / "t.json")
    found = json.loads((tmp_path / "t.json").read_text())
    assert found["stacks"][1]["temporary"] == 297 and found["stacks"][1]["lifetime_us"] == 1
    assert [found["places"][place]["line"] for place in found["stacks"][0]["places"]] == [
        LINES["inlined"], LINES["box"], LINES["main box"]]
    sites = {found["places"][site["place"]]["function"] for site in found["sites"]}
    assert sites == {"inlined()", "churn(char const*)"}


def page_of(found: profile.Profile) -> tuple[Page, str]:
    text = sites_page.html(found, "peak")
    return Page(text), text


def test_the_page_says_what_was_found_and_loads_nothing(made, load):
    page, text = page_of(load(made.said(**ROWS)))
    for said in ("peak 4.77 MiB in 500 blocks", "frees each at once", BOX[0], f"{BOX[1]} ← {BOX[2]}", "70 %",
                 "a program", "Live at the peak"):
        assert said in page.text, said
    assert page.loads == [] and page.events == [] and "leak" not in page.text.lower()
    used = set(re.findall(r"var\((--[\w-]+)\)", text))
    light, dark = text.split("@media screen and (prefers-color-scheme: dark)")[:2]
    assert {name for name in used if f"{name}:" not in light} == set()
    assert {name for name in used - {"--sans"} if f"{name}:" not in dark.split("@media")[0]} == set()
    flame = flame_of(text)
    assert [row[2:] for row in flame["nodes"] if flame["names"][row[0]][0] == "churn"] == [[0, 0, 3000, 300, 297]]


def flame_of(text: str) -> dict:
    return json.loads(re.search(r'id="flame-data">(.*?)</script>', text, re.DOTALL).group(1))


def test_hostile_names_are_text(made, load):
    said = made.said(**ROWS)
    for module in said["modules"]:
        module["path"] = f"/tmp/{HOSTILE}"
    page, text = page_of(load(said))
    assert page.tags.count("script") == 2 and "<script>alert" not in text and page.events == []


def test_many_stacks_make_a_bounded_page_that_loses_no_weight():
    random = np.random.default_rng(2)
    found = many(random, 20_000)
    nodes = tree.grow(found, 3000)
    assert len(nodes) <= 6000 and sum(node.folded for node in nodes) > 4000
    inside = collections.Counter()
    for node in nodes[1:]:
        inside[node.parent] += node.weights[2]
    for number, weight in inside.items():
        assert weight <= nodes[number].weights[2] * (1 + 1e-9)
    assert nodes[0].weights[2] == found.values[:, FIGURES.index("bytes")].sum() == inside[0]
    _, text = page_of(found)
    assert len(text) < 3_000_000 and "small parts are put together" in text


def many(random, count: int) -> profile.Profile:
    from reheap_lab.sites.symbols import Place
    places = [Place(f"function_{i}", f"function_{i}", "a.c", i, f"/lib/m{i % 12}.so") for i in range(2000)]
    stacks = [profile.Stack((), tuple(places[i] for i in random.zipf(1.2, 25) % 2000), 0) for _ in range(count)]
    values = random.pareto(1.0, (count, len(FIGURES))).round() + 1
    return profile.Profile("t", 0, {name: 1 for name in FIGURES}, [], stacks, values, np.ones(count),
                           np.full(count, np.nan), {}, set(), [])


def test_every_kind_has_a_figure():
    assert {kind.figure for kind in KINDS.values()} <= set(FIGURES) and {kind.count for kind in KINDS.values()} <= set(
        FIGURES)


# ---- with the recorder ------------------------------------------------------------------------

RECORDED = """
#include <stdlib.h>
#include <string.h>
static char *kept[100];
__attribute__((noinline)) static void load(int i) {
  kept[i] = malloc(10000); /* load */
  memset(kept[i], 1, 10000);
}
__attribute__((noinline)) static int churn(void) {
  char *word = strdup("hello"); /* churn */
  int length = strlen(word);
  free(word);
  return length;
}
int main(void) {
  int sum = 0;
  for (int i = 0; i < 100; i++) load(i);
  for (int i = 0; i < 5000; i++) sum += churn();
  for (int i = 0; i < 90; i++) free(kept[i]);
  return sum == 0;
}
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> pathlib.Path:
    """The folder of a program that was recorded whole, all.rht, and by samples, some.rht."""
    if native.find_library("libreheap-record.so") is None:
        pytest.skip("the recorder is not built here")
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "small.c").write_text(RECORDED)
    subprocess.run(["cc", "-O1", "-g", "-fno-builtin", "-o", folder / "small", folder / "small.c"], check=True)
    for name, stacks in (("all.rht", "all"), ("some.rht", "1K")):
        subprocess.run([sys.executable, "-c", "from reheap_lab.cli import main; main()", "record", "--stacks", stacks,
                        "-o", folder / name, "--", folder / "small"], check=True, capture_output=True)
    return folder


def test_a_recorded_program_is_told_line_by_line(recorded):
    lines = {mark: number for number, text in enumerate(RECORDED.splitlines(), 1)
             for mark in re.findall(r"/\* (\w+) \*/", text)}
    done = CliRunner().invoke(cli_trace.command, ["sites", str(recorded / "all.rht"), "--export",
                                                  str(recorded / "t.folded"), "--by", "allocations"])
    assert done.exit_code == 0, done.output
    shown = re.sub(r"\s+", " ", done.output)
    load, churn = f"load (small.c:{lines['load']})", f"churn (small.c:{lines['churn']})"
    for said in (f"98 % 5,000 {churn} by strdup", f"2.0 % 100 {load} from main (small.c",
                 f"{churn} makes 98 % of all allocations and frees each at once", "peak 977 KiB in 101 blocks",
                 f"{load} allocated 100 % of what was never freed: 97.7 KiB in 10 blocks"):
        assert said in shown, shown
    assert (recorded / "t.folded").read_text().splitlines()[1] == "main;load 100"


def test_samples_estimate_what_is_known(recorded):
    found = {}
    for name in ("all.rht", "some.rht"):
        _, said = trace.run(["sites", str(recorded / name)])
        found[name] = profile.load(json.loads(said), [recorded / name])
    assert found["all.rht"].totals == found["some.rht"].totals
    exact, sampled = ({site.key.function: site for site in groups.by_site(one)} for one in found.values())
    for name in ("load", "churn"):
        for figure in ("allocations", "bytes", "never_freed_bytes"):
            truth, site = exact[name].figures[figure], sampled[name]
            # Of the large blocks, which nearly always have a stack, one in 17,000 has none.
            block = exact[name].figures["bytes"] / exact[name].figures["allocations"] if "bytes" in figure else 1
            allowed = (6 * site.errors[figure] + 0.001) * truth + 2 * block
            assert abs(site.figures[figure] - truth) <= allowed, (name, figure)
