"""Whether these benchmarks see what is there: reheap against itself, with a difference that was planted.

Some of the synthetic workloads run under reheap beside a byte-identical copy of it, beside reheap slowed by 3 % of the
program's CPU time, and beside reheap that keeps so many blocks that peak memory rises by 10 % (bench/workloads/
planted.c). Each pair runs at the same time, each on one processor, and then the processors are exchanged (the lab's
side by side). What is found is the geometric mean over the workloads, with the lab's interval and in the lab's words. A
planted difference that is not found is a failure, and so is one that is found between equals.
"""

import os
import shutil
from dataclasses import dataclass

from common import means, question, tables
from common.paths import WORKLOADS, WORKLOADS_BUILT
from common.programs import build, build_program
from common.subjects import REHEAP
from reheap_lab import figures, verdicts
from reheap_lab.allocators import Allocator
from reheap_lab.errors import LabError
from reheap_lab.results import Comparison
from reheap_lab.statistics import Interval
from synthetic import WORKLOADS as SYNTHETIC

ROUNDS, QUICK_ROUNDS = 30, 12
# Workloads on one thread, and how often a run repeats each, for half a second; and some that take much memory.
TIMED = {"containers": 2, "glibc_simple": 20, "glibc_thread": 3}
LARGE = {"torture": 1, "maltest": 1, "rptest": 1}
REPEAT = 'for i in $(seq "$1"); do "$2" 1 || exit; done'
FOLDER = WORKLOADS_BUILT / "controls"


@dataclass(frozen=True, eq=False)
class Control:
    name: str
    planted: str
    flag: str  # for the compiler of what plants it; empty for a copy
    workloads: dict[str, int]
    expected: dict[str, str]  # by figure, the lab's word; empty for none that claims a difference


CONTROLS = (
    Control("reheap-copy", "nothing: a copy", "", TIMED, {"wall_s": "", "cpu_s": "", "peak_rss_kib": ""}),
    Control("reheap-slowed", "3 % more CPU time", "-DWORK=3", TIMED, {"cpu_s": "slower"}),
    Control("reheap-leaking", "10 % more memory", "-DLEAK=10", LARGE, {"peak_rss_kib": "more memory"}),
)


@dataclass(frozen=True)
class Finding:
    interval: Interval | None
    word: str
    right: bool


def allocator(control: Control, reheap: Allocator) -> Allocator:
    if control.flag:
        flags = ["-shared", "-fPIC", control.flag]
        planted = build(WORKLOADS / "planted.c", FOLDER / f"planted{control.flag}.so", flags)
        return Allocator(control.name, (planted, *reheap.libraries), reheap.version)
    copy = FOLDER / f"{control.name}.so"
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(reheap.libraries[0], copy.with_suffix(".new"))
    os.replace(copy.with_suffix(".new"), copy)  # a process may have the old one loaded
    return Allocator(control.name, (copy,), reheap.version)


def find(results: dict[str, Comparison], figure: str, control: Control) -> Finding:
    """What the means say of it."""
    interval, expected = means.interval(results, figure, control.name, REHEAP), control.expected[figure]
    if interval is None:
        return Finding(None, "not measured", False)
    known = figures.ALL[figure]
    margin = max(known.margin(made.summaries[figure][REHEAP].median, made.settings["margin"])
                 for made in results.values())
    word = verdicts.word_of(known, interval, margin)
    return Finding(interval, word, word == expected if expected else word in (figures.SAME, figures.UNDECIDED))


def rows_of(control: Control, found: dict[str, Finding]) -> list[list[str]]:
    return [[control.planted, figures.ALL[figure].label, *tables.cells(one.interval, 4), one.word,
             control.expected[figure] or "no difference", "PASS" if one.right else "FAIL"]
            for figure, one in found.items()]


def workload_rows(control: Control, results: dict[str, Comparison]) -> list[list[str]]:
    return [[control.name, title, figures.ALL[figure].label,
             *tables.cells(verdicts.ratio(made, figure, control.name, REHEAP), 4)]
            for title, made in results.items() for figure in control.expected]


def show(measured: dict[Control, dict[str, Comparison]]) -> bool:
    """Whether all is as it should be."""
    tables.show(["", "workload", "figure", "x reheap", "99 % interval"],
                [row for control, results in measured.items() for row in workload_rows(control, results)])
    print()
    found = {control: {figure: find(results, figure, control) for figure in control.expected}
             for control, results in measured.items()}
    tables.show(["planted", "figure", "found, x reheap", "99 % interval", "verdict", "expected", "result"],
                [row for control, by_figure in found.items() for row in rows_of(control, by_figure)])
    return all(one.right for by_figure in found.values() for one in by_figure.values())


def main(arguments: list[str]) -> int:
    asked = question.ask(question.parser("controls", __doc__, rounds=ROUNDS, quick_rounds=QUICK_ROUNDS), arguments)
    reheap = next((one for one in asked.allocators if one.name == REHEAP), None)
    if reheap is None:
        raise LabError("the controls compare reheap with itself; leave out --without-reheap")
    asked.allocators = [reheap]
    measured = {}
    for control in CONTROLS:
        pair = [reheap, allocator(control, reheap)]
        measured[control] = {
            name: asked.compare(f"{control.name} {name}",
                                ["sh", "-c", REPEAT, "sh", times, build_program(SYNTHETIC[name])],
                                allocators=pair, side_by_side=True)
            for name, times in control.workloads.items()}
    right = show(measured)
    tables.say(f"Geometric means over {len(TIMED)} workloads on one thread, side by side; rounds: {asked.rounds}.")
    if not right:
        tables.say("A control FAILED: what these benchmarks say of other differences of that size is not to be "
                   "relied on. On a busy machine, more rounds may do: ./dev bench controls --rounds "
                   f"{3 * asked.rounds}")
    return max(asked.end(), int(not right))
